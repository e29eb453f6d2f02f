import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { managedProcess, type ManagedProcess, type ProcessSpec } from '../../../deploy/dev/managedProcess.ts'; // prettier-ignore
import { describeProcess, endRecorded, readRecords, stillRuns, writeRecord } from '../../../deploy/dev/processRecord.ts'; // prettier-ignore

const forever = 'setInterval(() => undefined, 1_000);';

describe('a process of the local stack', () => {
  let folder: string;
  let folders: { logs: string; pids: string };
  let deaths: string[];
  const started: ManagedProcess[] = [];
  const { signal } = new AbortController();

  function run(code: string, spec: Partial<ProcessSpec> = {}): ManagedProcess {
    const child = managedProcess(
      {
        name: 'child',
        command: process.execPath,
        args: ['--eval', code],
        env: process.env,
        isReady: async () => true,
        readyWithinMs: 20_000,
        stopGraceMs: 10_000,
        ...spec,
      },
      folders,
      (error) => void deaths.push(error.message),
    );
    started.push(child);
    return child;
  }

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'processes-'));
    folders = { logs: join(folder, 'logs'), pids: join(folder, 'pids') };
    mkdirSync(folders.logs);
    mkdirSync(folders.pids);
    deaths = [];
  });
  afterEach(async () => {
    for (const child of started.splice(0)) await child.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  test('is recorded while it runs, and no longer', async () => {
    const child = run(forever);
    await child.start(signal);
    assert.deepEqual(
      readRecords(folders.pids).map(({ name, pid }) => [name, pid]),
      [['child', child.pid()]],
    );
    await child.stop();
    assert.deepEqual(readRecords(folders.pids), []);
    assert.equal(child.pid(), undefined);
    assert.deepEqual(deaths, []);
  });

  test('that ends before it is ready fails the start with the end of its log', async () => {
    const child = run('console.error("port 80 is taken"); process.exit(3);', {
      isReady: async () => false,
    });
    await assert.rejects(child.start(signal), {
      name: 'UserError',
      message:
        /^child ended while starting \(exit code 3\)\. The end of .*:\n {4}port 80 is taken$/,
    });
  });

  test('that never gets ready fails the start', async () => {
    const child = run(forever, { isReady: async () => false, readyWithinMs: 0 });
    await assert.rejects(child.start(signal), /child was not ready within 0 s/);
  });

  test('whose program is missing fails the start', async () => {
    const child = run('', { command: '/nowhere/program', isReady: async () => false });
    await assert.rejects(child.start(signal), /it could not be run/);
  });

  test('that dies by itself is reported with its signal', async () => {
    const child = run(forever);
    await child.start(signal);
    const { pid = 0 } = { pid: child.pid() };
    const died = new Promise<void>((resolve) => {
      const poll = setInterval(() => {
        if (deaths.length === 0) return;
        clearInterval(poll);
        resolve();
      }, 5);
    });
    process.kill(pid, 'SIGKILL');
    await died;
    assert.match(deaths.join(), /^child ended unexpectedly \(signal SIGKILL\)/);
  });

  test('can be killed and started again without that being reported', async () => {
    const child = run(forever);
    await child.start(signal);
    const first = child.pid();
    await child.kill();
    await child.start(signal);
    assert.notEqual(child.pid(), first);
    assert.deepEqual(deaths, []);
  });

  test('that ignores SIGTERM is killed after its grace', async () => {
    const code = `process.on('SIGTERM', () => undefined); ${forever} console.log('ready');`;
    const child = run(code, { stopGraceMs: 100 });
    await child.start(signal);
    await child.stop();
    assert.equal(child.pid(), undefined);
  });

  test('left by a crash is ended by its record, and only when the record fits', async () => {
    const child = run(forever);
    await child.start(signal);
    const record = describeProcess('child', child.pid() ?? 0);
    assert.ok(record !== undefined);
    const strangers = [
      { ...record, startTicks: '1' },
      { ...record, bootId: 'another boot' },
      { ...record, commandLine: 'another program' },
    ];
    for (const stranger of strangers) assert.equal(await endRecorded(stranger, 1_000), false);
    assert.ok(stillRuns(record), 'a process that does not fit its record is left alone');
    writeRecord(folders.pids, record);
    const [read] = readRecords(folders.pids);
    assert.deepEqual(read, record);
    assert.equal(await endRecorded(record, 5_000), true);
    assert.equal(stillRuns(record), false);
  });
});
