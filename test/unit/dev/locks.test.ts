import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { fillCache } from '../../../deploy/dev/cache.ts';
import { lockHolder, tryLock, waitForLock, type LockHolder } from '../../../deploy/dev/lock.ts';
import { claimPort } from '../../../deploy/dev/ports.ts';

const lockModule = fileURLToPath(new URL('../../../deploy/dev/lock.ts', import.meta.url));

describe('a lock between processes', () => {
  test('is held by one, and names its holder to the others', async () => {
    const name = `test ${process.pid} one`;
    const lock = await tryLock(name, 'building a tool');
    assert.ok(lock !== undefined);
    assert.equal(await tryLock(name, 'too late'), undefined);
    assert.deepEqual(await lockHolder(name), { pid: process.pid, what: 'building a tool' });
    lock.release();
    assert.equal(await lockHolder(name), undefined);
  });

  test('is free again when its holder was killed', async () => {
    const name = `test ${process.pid} killed`;
    const code = `const { tryLock } = await import(${JSON.stringify(lockModule)});
      await tryLock(${JSON.stringify(name)}, 'holding'); console.log('held');
      setInterval(() => undefined, 1_000);`;
    const holder = spawn(process.execPath, ['--input-type=module', '--eval', code]);
    await new Promise((resolve) => void holder.stdout.once('data', resolve));
    const waitedFor: number[] = [];
    const onWait = ({ pid }: LockHolder): void => {
      waitedFor.push(pid);
      holder.kill('SIGKILL');
    };
    const lock = await waitForLock(name, 'next', onWait, new AbortController().signal);
    assert.deepEqual(waitedFor, [holder.pid]);
    lock.release();
  });

  test('need not be waited for any longer after an interrupt', async () => {
    const name = `test ${process.pid} interrupt`;
    const lock = await tryLock(name, 'holding');
    const interrupt = new AbortController();
    const waiting = waitForLock(name, 'next', () => interrupt.abort(), interrupt.signal);
    await assert.rejects(waiting, { name: 'AbortError' });
    lock?.release();
  });
});

describe('a claimed port', () => {
  test('is never handed out twice', async () => {
    const claims = await Promise.all(Array.from({ length: 40 }, () => claimPort()));
    assert.equal(new Set(claims.map(({ port }) => port)).size, claims.length);
    for (const claim of claims) claim.release();
  });

  test('can be listened on, and is outside the range of outgoing connections', async () => {
    const claim = await claimPort();
    const { port } = claim;
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', resolve);
    });
    server.close();
    claim.release();
    assert.ok(port >= 20_000 && port < 32_000);
  });
});

describe('the cache', () => {
  test('holds a whole entry or none', async () => {
    const cache = mkdtempSync(join(tmpdir(), 'cache-'));
    const broken = fillCache(cache, 'tool-1', async (folder) => {
      writeFileSync(join(folder, 'tool'), 'half');
      throw new Error('cut off');
    });
    await assert.rejects(broken, /cut off/);
    assert.ok(!existsSync(join(cache, 'tool-1')));
    await fillCache(cache, 'tool-1', async (folder) => writeFileSync(join(folder, 'tool'), 'all'));
    assert.deepEqual(readdirSync(join(cache, 'tool-1')), ['tool']);
    assert.deepEqual(readdirSync(join(cache, 'unfinished')), []);
    rmSync(cache, { recursive: true });
  });

  test('says that the disk is full, and what to do', async () => {
    const cache = mkdtempSync(join(tmpdir(), 'cache-'));
    const full = fillCache(cache, 'tool-1', () =>
      Promise.reject(Object.assign(new Error('write'), { code: 'ENOSPC' })),
    );
    await assert.rejects(full, {
      name: 'UserError',
      message: /^The disk is full: free about 4 GB/,
    });
    rmSync(cache, { recursive: true });
  });
});
