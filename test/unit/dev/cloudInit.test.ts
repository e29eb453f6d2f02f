import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { findCloudInit } from '../../../deploy/dev/cloudInit.ts';

describe('where cloud-init comes from', () => {
  const before = { ...process.env };
  let folder: string;

  /** A shell script on PATH. */
  function program(name: string, script: string): string {
    const path = join(folder, 'bin', name);
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
    return path;
  }

  const withCloudInit = 'exit 0';
  const without = 'case "$2" in *version_info*) echo 3.11 ;; *) exit 1 ;; esac';

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'cloud-init-'));
    mkdirSync(join(folder, 'bin'));
    process.env['PATH'] = join(folder, 'bin');
    process.env['EGRESS_PROXIES_CACHE'] = join(folder, 'cache');
  });
  afterEach(() => {
    for (const name of Object.keys(process.env)) delete process.env[name];
    Object.assign(process.env, before);
    rmSync(folder, { recursive: true, force: true });
  });

  test("the system's Python may have it", async () => {
    const python = program('python', withCloudInit);
    const found = await findCloudInit(undefined, undefined, python);
    assert.deepEqual(found, { python, modules: null });
  });

  test('what was fetched once is used again', async () => {
    const python = program('python', without);
    const modules = join(folder, 'cache/cloud-init-python3.11/modules');
    mkdirSync(modules, { recursive: true });
    const found = await findCloudInit(undefined, undefined, python);
    assert.deepEqual(found, { python, modules });
  });

  test('where it cannot be had, the tests fail and say what to do', async () => {
    const python = program('python', without);
    program('apt-get', 'echo "E: Unable to locate package cloud-init" >&2; [ "$1" = update ]');
    await assert.rejects(
      findCloudInit(undefined, undefined, python),
      /cannot be downloaded: E: Unable to locate package cloud-init\. .*install cloud-init/,
    );
  });

  test('a machine without apt-get is told that it is missing', async () => {
    const python = program('python', without);
    await assert.rejects(findCloudInit(undefined, undefined, python), /apt-get is not installed/);
  });
});
