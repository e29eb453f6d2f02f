import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from './errors.ts';
import { parseUpload, storedFileName } from './uploadParser.ts';

const TYPE = 'multipart/form-data; boundary=XYZ';

function body(...parts: readonly string[]): Buffer {
  return Buffer.from(`${parts.map((part) => `--XYZ\r\n${part}\r\n`).join('')}--XYZ--\r\n`);
}

const content = 'Content-Disposition: form-data; name="content"\r\n\r\niso';
const file = 'Content-Disposition: form-data; name="filename"; filename="a.iso"\r\n\r\nbytes';

describe('upload parser', () => {
  it('reads the content type and then the file', () => {
    const upload = parseUpload(TYPE, body(content, file));
    assert.equal(upload?.fields['content'], 'iso');
    assert.equal(upload?.filename, 'a.iso');
    assert.equal(upload?.data.toString(), 'bytes');
  });

  it('takes everything up to the closing boundary for file, later fields included', () => {
    const upload = parseUpload(TYPE, body(file, content));
    assert.equal(upload?.fields['content'], undefined);
    assert.match(upload?.data.toString() ?? '', /^bytes\r\n--XYZ\r\nContent-Disposition/);
  });

  it('gives no answer to a body that is no multipart', () => {
    assert.equal(parseUpload('application/octet-stream', Buffer.from('x')), null);
    assert.equal(parseUpload(undefined, Buffer.from('x')), null);
  });

  it('refuses a text field it does not know with a bare 400', () => {
    const bogus = 'Content-Disposition: form-data; name="bogus"\r\n\r\n1';
    assert.throws(
      () => parseUpload(TYPE, body(content, bogus, file)),
      (error) => error instanceof ApiError && error.status === 400 && error.body === 'none',
    );
  });

  it('refuses a file field of another name and says which one it expects', () => {
    const wrong = 'Content-Disposition: form-data; name="file"; filename="a.iso"\r\n\r\nbytes';
    assert.throws(
      () => parseUpload(TYPE, body(content, wrong)),
      /wrong field name 'file'.*'filename'/,
    );
  });

  it('calls a truncated body a failed upload', () => {
    const whole = body(content, file);
    assert.throws(() => parseUpload(TYPE, whole.subarray(0, whole.length - 12)), /upload failed/);
  });

  it('stores a file without its directory and with an underscore for every other character', () => {
    assert.equal(storedFileName('../we ird@näme.iso'), 'we_ird_n_me.iso');
    assert.throws(() => storedFileName('seed.txt'), ApiError);
  });
});
