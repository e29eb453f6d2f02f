import { ApiError, paramError, transportError } from './errors.ts';

/** What pveproxy's multipart reader gets out of an upload request. */
export interface Upload {
  /** `content`, `checksum`, `checksum-algorithm`. */
  fields: Readonly<Record<string, string>>;
  filename: string;
  data: Buffer;
}

const UPLOAD_FAILED = 'upload failed at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line 1370.';
/** The only text fields, in the only order, that the reader knows (pve/README 36). */
const FIELD_ORDER = ['content', 'checksum-algorithm', 'checksum'];

/**
 * Reads multipart/form-data exactly as narrow-mindedly as PVE::APIServer::AnyEvent does: text fields in a fixed
 * order, then the file; everything up to the closing boundary is file. `null` when the body is no multipart at all:
 * then pveproxy gives no answer.
 */
export function parseUpload(contentType: string | undefined, body: Buffer): Upload | null {
  const boundary = /^multipart\/form-data;\s*boundary=(\S+)$/i.exec(contentType ?? '')?.[1];
  if (boundary === undefined) return null;
  const delimiter = Buffer.from(`--${boundary}\r\n`);
  const fields: Record<string, string> = {};
  let nextField = 0;
  let at = 0;
  for (;;) {
    if (!startsWith(body, delimiter, at)) throw uploadFailed();
    at += delimiter.length;
    const headEnd = body.indexOf('\r\n\r\n', at);
    if (headEnd < 0) throw uploadFailed();
    const headers = body.subarray(at, headEnd).toString('utf8').split('\r\n');
    const disposition = headers[0] ?? '';
    if (!/^Content-Disposition: /i.test(disposition)) throw uploadFailed();
    const name = /\bname="([^"]*)"/.exec(disposition)?.[1] ?? '';
    const filename = /; ?name="[^"]*"; ?filename="([^"]*)"/.exec(disposition)?.[1];
    at = headEnd + 4;
    if (filename !== undefined) {
      if (name !== 'filename') {
        throw transportErrorWithLine(
          `wrong field name '${name}' for file upload, expected 'filename' at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line 1320.`,
        );
      }
      return { fields, filename, data: fileData(body, at, boundary) };
    }
    const order = FIELD_ORDER.indexOf(name, nextField);
    // A message with a carriage return in it ends as a bare 400 (pve/README 3).
    if (order < 0) throw new ApiError(400, 'Bad Request', { body: 'none' });
    nextField = order + 1;
    const end = body.indexOf(`\r\n--${boundary}`, at);
    if (end < 0) throw uploadFailed();
    fields[name] = body.subarray(at, end).toString('utf8');
    at = end + 2;
  }
}

/** The name an upload is stored under, or a 400 (api-facts 5.8). */
export function storedFileName(filename: string): string {
  const base = filename.replace(/^.*[/\\]/s, '');
  const stored = base.replace(/[^A-Za-z0-9_.-]/g, '_');
  if (!/\.(iso|img)$/i.test(stored)) throw paramError({ filename: 'wrong file extension' });
  return stored;
}

function fileData(body: Buffer, from: number, boundary: string): Buffer {
  const closing = body.lastIndexOf(`\r\n--${boundary}--`);
  if (closing < from) {
    // An empty file part may close right after its headers.
    if (body.indexOf(`--${boundary}--`, from) === from) return Buffer.alloc(0);
    throw uploadFailed();
  }
  return body.subarray(from, closing);
}

function startsWith(body: Buffer, prefix: Buffer, at: number): boolean {
  return body.subarray(at, at + prefix.length).equals(prefix);
}

function uploadFailed(): ApiError {
  return transportErrorWithLine(UPLOAD_FAILED);
}

function transportErrorWithLine(text: string): ApiError {
  return transportError(500, text);
}
