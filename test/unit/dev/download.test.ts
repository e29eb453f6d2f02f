import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { checksumFor, downloadProgram } from '../../../deploy/dev/download.ts';
import type { OfficialDownload } from '../../../deploy/dev/toolTable.ts';

const content = 'a program';
const sum = createHash('sha256').update(content).digest('hex');

describe('an official download', () => {
  const pages = new Map<string, Buffer>();
  let server: Server;
  let url: string;
  let folder: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'download-'));
    server = createServer((request, response) => {
      const page = pages.get(request.url ?? '');
      response.writeHead(page === undefined ? 404 : 200).end(page);
    });
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    assert.ok(typeof address === 'object' && address !== null);
    url = `http://127.0.0.1:${address.port}`;
    pages.set('/program', Buffer.from(content));
    pages.set('/good.sha256', Buffer.from(sum));
    pages.set('/bad.sha256', Buffer.from('0'.repeat(64)));
    mkdirSync(join(folder, 'pack/inner'), { recursive: true });
    writeFileSync(join(folder, 'pack/inner/tool'), content);
    const archive = join(folder, 'archive.tar.gz');
    execFileSync('tar', ['-czf', archive, '-C', join(folder, 'pack'), 'inner/tool']);
    pages.set('/archive.tar.gz', readFileSync(archive));
  });
  after(() => {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const download = (source: OfficialDownload): Promise<string> =>
    downloadProgram(source, folder, { receivedMiB: 0 }, new AbortController().signal);

  test('is kept when its checksum is the published one', async () => {
    const file = await download({ url: `${url}/program`, sha256Url: `${url}/good.sha256` });
    assert.equal(readFileSync(file, 'utf8'), content);
  });

  test('is refused when its checksum is another', async () => {
    await assert.rejects(
      download({ url: `${url}/program`, sha256Url: `${url}/bad.sha256` }),
      new RegExp(`/program has SHA-256 ${sum}, its publisher says 0{64}`),
    );
  });

  test('out of an archive is the member that was asked for', async () => {
    const file = await download({ url: `${url}/archive.tar.gz`, member: 'inner/tool' });
    assert.equal(readFileSync(file, 'utf8'), content);
  });

  test('that is not there says so', async () => {
    await assert.rejects(download({ url: `${url}/nothing` }), /\/nothing answered 404/);
  });
});

describe('a page of checksums', () => {
  const other = 'f'.repeat(64);
  test('may be the bare sum', () => {
    assert.equal(checksumFor(`${sum}\n`, 'https://x/tool'), sum);
  });
  test('may list many files, also with a mark for binary and a folder', () => {
    const page = `${other}  tool.zip\n${sum} *./dist/tool\n`;
    assert.equal(checksumFor(page, 'https://x/tool'), sum);
  });
  test('that lacks the file is an error, not a pass', () => {
    assert.throws(() => checksumFor(`${other}  tool.zip\n`, 'https://x/tool'), /does not name it/);
  });
});
