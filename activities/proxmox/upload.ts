/** The multipart body pveproxy's hand-written parser accepts (pve/README 36, testdata/pve/9.2 08-upload-*). */
import { createHash } from 'node:crypto';
import { permanent } from '../providerError.ts';

/**
 * One buffered body with the file part last, `Content-Disposition` first in each part, `name` before `filename`.
 * Throws Permanent `Internal` unless `filename` consists of `[A-Za-z0-9_.-]`: Proxmox would rewrite other characters,
 * and quotes would break the header.
 */
export function isoUploadBody(
  filename: string,
  image: Uint8Array,
): { contentType: string; body: Uint8Array } {
  if (!/^[A-Za-z0-9_.-]+$/.test(filename)) {
    throw permanent(
      'Internal',
      `${JSON.stringify(filename)} is not a file name that Proxmox keeps as it is`,
    );
  }
  // Follows from the content, so that no content can hold it by chance; unquoted in the header.
  const boundary = `iso-${createHash('sha256').update(image).digest('hex').slice(0, 40)}`;
  const head =
    `--${boundary}\r\n` +
    'Content-Disposition: form-data; name="content"\r\n\r\n' +
    'iso\r\n' +
    `--${boundary}\r\n` +
    `Content-Disposition: form-data; name="filename"; filename="${filename}"\r\n` +
    'Content-Type: application/octet-stream\r\n\r\n';
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    body: Buffer.concat([Buffer.from(head), image, Buffer.from(`\r\n--${boundary}--\r\n`)]),
  };
}
