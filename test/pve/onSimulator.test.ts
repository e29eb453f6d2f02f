/** `make test-integration-proxmox`, over the same variables, against the simulator. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { newVm } from '../simulator/cluster.ts';
import { startSimulator, type Simulator } from '../simulator/simulator.ts';
import { makeCa, type TestCa } from '../support/tls.ts';
import { formatMark, installationHex } from '../../activities/vm/identity.ts';
import { installationId } from './host.ts';

const program = fileURLToPath(new URL('main.ts', import.meta.url));
const fixture = fileURLToPath(new URL('../simulator/fixtures/local.yaml', import.meta.url));
const token = 'proxy-operator@pve!operator=00000000-0000-4000-8000-000000000001';
const secret = token.split('=')[1] ?? '';

let ca: TestCa;
let simulator: Simulator;

beforeEach(async () => {
  ca = await makeCa();
  const tls = await ca.issue(['127.0.0.1']);
  simulator = await startSimulator({ fixture, tls, timeScale: 0.05 });
  writeFileSync(join(ca.dir, 'token'), `${token}\n`);
});
afterEach(async () => {
  await simulator.close();
  rmSync(ca.dir, { recursive: true });
});

interface Outcome {
  code: number;
  text: string;
}

/** `interruptAt`: Ctrl-C as soon as the program says this. */
function run(
  args: string[],
  variables: Record<string, string> = {},
  interruptAt?: string,
): Promise<Outcome> {
  const env = {
    PATH: process.env['PATH'] ?? '',
    PROXMOX_URL: simulator.url,
    PROXMOX_TOKEN_FILE: join(ca.dir, 'token'),
    PROXMOX_CA_FILE: ca.caFile,
    PROXMOX_NODE: 'pv1-1',
    PROXMOX_ISO_STORAGE: 'proxy-seeds',
    PROXMOX_TEMPLATE: '9001',
    PROXMOX_VMID_MIN: '990000',
    PROXMOX_VMID_MAX: '990003',
    PROXMOX_DISK_GIB: '5',
    ...variables,
  };
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [program, ...args], { env }, (error, out, err) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
      resolve({ code, text: `${out}${err}` });
    });
    let seen = '';
    child.stdout?.on('data', (chunk: string) => {
      if (interruptAt === undefined || seen.includes(interruptAt)) return;
      seen += chunk;
      if (seen.includes(interruptAt)) child.kill('SIGINT');
    });
  });
}

function writes(): string[] {
  return simulator.requests
    .filter(({ method }) => method !== 'GET')
    .map(({ method, path }) => `${method} ${path}`);
}

function vmids(): number[] {
  return simulator.vms().map(({ vmid }) => vmid).sort((a, b) => a - b); // prettier-ignore
}

/** A VM that an earlier run was killed over, this long ago. */
function forgotten(
  vmid: number,
  agoMs: number,
  changes: { name?: string; uid?: string } = {},
): void {
  const uid = '22222222-2222-4222-8222-222222222222';
  const mark = formatMark({
    managed: 'true',
    uid: changes.uid ?? uid,
    createdAt: new Date(Date.now() - agoMs).toISOString(),
    installation: installationId,
    proxy: 'integration/test',
    spec: 'abcdef'.padEnd(64, '0'),
    deletionPolicy: 'Delete',
  });
  const name = changes.name ?? `proxy-test-${installationHex(installationId)}-22222222-abcdef`;
  const config = new Map(Object.entries({ name, description: mark, memory: '512' }));
  simulator.cluster.vms.set(vmid, newVm(vmid, 'qemu', 'pv1-1', config));
  simulator.refreshStats();
}

describe('the integration test on a host', () => {
  it('makes a VM, finds it again, changes it and removes it: nothing is left', async () => {
    const before = vmids();
    const { code, text } = await run([]);
    assert.equal(code, 0, text);
    assert.match(text, /ok: one VM was made, found again, changed and removed/);
    assert.deepEqual(vmids(), before);
    assert.deepEqual(simulator.isos(), []);
    const clones = simulator.requests.filter(({ path }) => path.endsWith('/clone'));
    assert.equal(clones.length, 1);
    const vmid = Number(clones[0]?.params['newid']);
    assert.ok(vmid >= 990_000 && vmid <= 990_003, `${vmid}`);
    assert.match(text, /has the address 10\.99\.\d+\.\d+/);
    assert.ok(!text.includes(secret));
  });

  it('removes what it made when a step fails, and says which and why', async () => {
    const before = vmids();
    const fail = 'start failed: QEMU exited with code 1';
    simulator.faults.push({ method: 'POST', path: /\/start$/, action: { kind: 'task', fail } });
    const { code, text } = await run([]);
    assert.equal(code, 1);
    assert.match(text, /start of VM 99000\d .*QEMU exited with code 1/);
    assert.match(text, /nothing is left/);
    assert.deepEqual(vmids(), before);
    assert.deepEqual(simulator.isos(), []);
  });

  it('removes what it made when it is interrupted, a clone under way included', async () => {
    const before = vmids();
    for (const at of ['cloning', 'starting VM']) {
      const { code, text } = await run([], {}, at);
      assert.equal(code, 130, text);
      assert.match(text, /nothing is left/);
      assert.deepEqual(vmids(), before, at);
      assert.deepEqual(simulator.isos(), [], at);
    }
  });

  it('removes what a killed run left, and nothing that is not marked so', async () => {
    forgotten(990_000, 2 * 60 * 60_000);
    forgotten(990_001, 2 * 60 * 60_000, { name: 'somebodys-vm' });
    forgotten(100_000, 2 * 60 * 60_000);
    const { code, text } = await run([]);
    assert.equal(code, 0, text);
    assert.match(text, /removing VM 990000/);
    assert.deepEqual(vmids().filter((vmid) => vmid > 9_999), [100_000, 990_001]); // prettier-ignore
  });

  it('does not start beside a run that may go on, unless it is told to sweep', async () => {
    forgotten(990_000, 60_000);
    const beside = await run([]);
    assert.equal(beside.code, 1);
    assert.match(beside.text, /VM 990000 .*within the last hour.*--sweep/s);
    assert.deepEqual(writes(), []);
    const swept = await run(['--sweep']);
    assert.equal(swept.code, 0, swept.text);
    assert.equal(simulator.cluster.vms.has(990_000), false);
  });
});

describe('the check of a host', () => {
  it('says that it is ready, and creates nothing', async () => {
    const { code, text } = await run(['--check-only']);
    assert.equal(code, 0, text);
    assert.match(text, /pv1-1: Reachable in \d+ ms; .*templates 1\/1/);
    assert.deepEqual(writes(), []);
    assert.ok(!text.includes(secret));
  });

  it('says what is wrong, for each kind of mistake, before anything is made', async () => {
    const mistakes: [variables: Record<string, string>, says: RegExp][] = [
      [{ PROXMOX_TEMPLATE: '9999' }, /TemplateNotFound/],
      [{ PROXMOX_ISO_STORAGE: 'nosuch' }, /StorageNotFound|Forbidden/],
      [{ PROXMOX_TOKEN_FILE: '/nowhere/token' }, /CredentialsUnavailable/],
      [{ PROXMOX_URL: 'https://127.0.0.1:1' }, /Unreachable/],
    ];
    for (const [variables, says] of mistakes) {
      const { code, text } = await run([], variables);
      assert.equal(code, 1, text);
      assert.match(text, says);
    }
    assert.deepEqual(writes(), []);
  });

  it('names every variable that is missing, and one that is wrong with what it may be', async () => {
    const missing = await run([], { PROXMOX_URL: '', PROXMOX_TEMPLATE: '' });
    assert.equal(missing.code, 1);
    assert.match(missing.text, /PROXMOX_URL: https:.*PROXMOX_TEMPLATE: VMID/s);
    const wrong = await run([], { PROXMOX_VLAN_TAG: '5000', PROXMOX_VMID_MIN: '7' });
    assert.equal(wrong.code, 1);
    assert.match(wrong.text, /vlanTag.*vmidRange\.min|vmidRange\.min.*vlanTag/s);
    assert.deepEqual(simulator.requests, []);
  });
});
