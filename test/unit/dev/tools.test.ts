import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { cacheFolder } from '../../../deploy/dev/cache.ts';
import { isUsable } from '../../../deploy/dev/toolTable.ts';
import { findTool } from '../../../deploy/dev/tools.ts';

describe('where the tools of the local stack come from', () => {
  const before = { ...process.env };
  let folder: string;
  let lines: string[];
  const log = (line: string): void => void lines.push(line);

  /** A program that answers any arguments with that text. */
  function program(path: string, answer: string): void {
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, `#!/bin/sh\necho '${answer}'\n`);
    chmodSync(path, 0o755);
  }

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tools-'));
    lines = [];
    const path = join(folder, 'bin');
    mkdirSync(path);
    process.env['PATH'] = path;
    process.env['EGRESS_PROXIES_CACHE'] = join(folder, 'cache');
    delete process.env['KUBEBUILDER_ASSETS'];
    // Nothing answers there: no test reaches the internet, on any machine.
    process.env['HTTPS_PROXY'] = 'http://127.0.0.1:1';
    process.env['NO_PROXY'] = '';
  });
  afterEach(() => {
    for (const name of Object.keys(process.env)) delete process.env[name];
    Object.assign(process.env, before);
    rmSync(folder, { recursive: true, force: true });
  });

  test('a recent one on PATH is used', async () => {
    const path = join(folder, 'bin/kubectl');
    program(path, '{"clientVersion": {"gitVersion": "v1.34.2-distro"}}');
    assert.deepEqual(await findTool('kubectl', log), { path, version: '1.34.2', from: 'PATH' });
    assert.deepEqual(lines, []);
  });

  test('one on PATH that is too old is passed over, and said so', async () => {
    program(join(folder, 'bin/temporal'), 'temporal version 0.13.1 (Server 1.24.0)');
    const cached = join(folder, 'cache/temporal-1.9.1-amd64/temporal');
    program(cached, '');
    assert.deepEqual(await findTool('temporal', log), {
      path: cached,
      version: '1.9.1',
      from: 'cache',
    });
    assert.deepEqual(lines, [
      `${join(folder, 'bin/temporal')} is not used: version 0.13.1, at least 1.9.1 is needed`,
    ]);
  });

  test('one that cannot run here is passed over', async () => {
    program(join(folder, 'bin/etcd'), 'not an etcd');
    const cached = join(folder, 'cache/etcd-3.6.5-amd64/etcd');
    program(cached, '');
    assert.equal((await findTool('etcd', log)).path, cached);
    assert.match(lines.join(), /is not used: version unknown/);
  });

  test('KUBEBUILDER_ASSETS is asked for what envtest keeps there, and for nothing else', async () => {
    process.env['KUBEBUILDER_ASSETS'] = join(folder, 'assets');
    program(join(folder, 'assets/kube-apiserver'), 'Kubernetes v1.35.0');
    program(join(folder, 'assets/temporal'), 'temporal version 1.9.1');
    const cached = join(folder, 'cache/temporal-1.9.1-amd64/temporal');
    program(cached, '');
    assert.deepEqual(await findTool('kube-apiserver', log), {
      path: join(folder, 'assets/kube-apiserver'),
      version: '1.35.0',
      from: 'KUBEBUILDER_ASSETS',
    });
    assert.equal((await findTool('temporal', log)).from, 'cache');
  });

  test('when no way works, one message says why each failed and what to install', async () => {
    await assert.rejects(findTool('etcd', log), {
      name: 'UserError',
      message:
        'etcd 3.6.5 cannot be had: github.com cannot be reached (ECONNREFUSED); go is not installed: install Go 1.25 or newer (https://go.dev/dl). Put it on PATH, or make one of these work.',
    });
    await assert.rejects(findTool('temporal', log), /python3 is not installed/);
  });

  test('a Go that is too old is named, with what to install', async () => {
    program(join(folder, 'bin/go'), 'go1.22.4\nlocal');
    await assert.rejects(findTool('etcd', log), /go1\.22\.4 is too old: install Go 1\.25 or newer/);
  });

  test('a Python without pip is named, with what to install', async () => {
    const python = join(folder, 'bin/python3');
    writeFileSync(python, '#!/bin/sh\necho "No module named pip" >&2\nexit 1\n');
    chmodSync(python, 0o755);
    await assert.rejects(findTool('temporal', log), /python3 has no pip: install it/);
  });

  test('a cache that cannot be written is named, with the variable that moves it', async () => {
    writeFileSync(join(folder, 'file'), '');
    process.env['EGRESS_PROXIES_CACHE'] = join(folder, 'file/cache');
    await assert.rejects(
      findTool('etcd', log),
      /^UserError: The cache folder .*\/file\/cache cannot be written \(ENOTDIR\): set EGRESS_PROXIES_CACHE/,
    );
  });
});

describe('a version on PATH', () => {
  const cases: [string, string, boolean][] = [
    ['1.9.1', '1.9.1', true],
    ['1.10.0', '1.9.1', true],
    ['1.9.0', '1.9.1', false],
    ['2.0.0', '1.9.1', false],
    ['0.99.9', '1.9.1', false],
    ['1.35.4', '1.33.0', true],
  ];
  for (const [version, atLeast, usable] of cases) {
    test(`${version} is ${usable ? '' : 'not '}good enough for ${atLeast}`, () => {
      assert.equal(isUsable(version, atLeast), usable);
    });
  }
});

test('the cache is beneath XDG_CACHE_HOME, unless EGRESS_PROXIES_CACHE names it', () => {
  assert.equal(cacheFolder({ XDG_CACHE_HOME: '/x' }), '/x/egress-proxies-operator');
  assert.equal(cacheFolder({ XDG_CACHE_HOME: '/x', EGRESS_PROXIES_CACHE: '/own' }), '/own');
  assert.match(cacheFolder({ XDG_CACHE_HOME: '' }), /\/\.cache\/egress-proxies-operator$/);
});
