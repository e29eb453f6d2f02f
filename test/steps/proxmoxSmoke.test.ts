/** Every method of the seam against the simulated cluster, through TLS: one VM's whole life in order. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createProxmoxApi, upidNode } from '../../activities/proxmox/client.ts';
import { createProxmoxHttp } from '../../activities/proxmox/http.ts';
import type { ProxmoxHttp } from '../../activities/proxmox/http.ts';
import type { ProxmoxApi, Upid } from '../../activities/proxmox/api.ts';
import { makeCertificates } from '../simulator/certificates.ts';
import { startSimulator } from '../simulator/simulator.ts';
import type { Simulator } from '../simulator/simulator.ts';
import { eventually } from '../support/eventually.ts';
import { anAttempt, asWords, failureOf } from '../support/proxmoxClient.ts';

const fixture = fileURLToPath(new URL('../simulator/fixtures/local.yaml', import.meta.url));
const vmid = 100_123;
const volid = 'proxy-seeds:iso/proxy-a-seed.iso';

let dir: string;
let simulator: Simulator;
let http: ProxmoxHttp;
let api: ProxmoxApi;

before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'smoke-'));
  const tls = await makeCertificates(dir);
  simulator = await startSimulator({ fixture, tls, timeScale: 0.01 });
  writeFileSync(
    join(dir, 'token'),
    'proxy-operator@pve!operator=00000000-0000-4000-8000-000000000001\n',
  );
  http = createProxmoxHttp({
    provider: 'lab',
    url: simulator.url,
    tokenFile: join(dir, 'token'),
    caFile: tls.caFile,
    insecureSkipTLSVerify: false,
    requestBoundMs: 10_000,
  });
  api = createProxmoxApi('lab', http, anAttempt());
});
after(async () => {
  await http.close();
  await simulator.close();
  rmSync(dir, { recursive: true });
});

/** Waits for a task and returns its exit status. */
async function ended(upid: Upid): Promise<string> {
  let exit: string | undefined;
  await eventually(async () => {
    const task = await api.getTask(upid);
    exit = task.exitstatus;
    return task.status === 'stopped';
  });
  return exit ?? '';
}

describe('the seam over TLS to a simulated cluster', () => {
  it('reads of the cluster', async () => {
    assert.match((await api.getVersion()).version, /^9\./);
    const nodes = (await api.listNodes()).sort((a, b) => a.node.localeCompare(b.node));
    assert.deepEqual(nodes, [
      { node: 'pv1-1', status: 'online' },
      { node: 'pv1-2', status: 'online' },
    ]);
    const rows = await api.listVms();
    assert.deepEqual(
      rows.map((row) => row.vmid).sort((a, b) => a - b),
      [9001, 9002],
    );
    assert.ok(rows.every((row) => row.type === 'qemu'));
    assert.ok((await api.getPermissions('/storage/proxy-seeds')).has('Datastore.Allocate'));
    assert.ok(!(await api.getPermissions('/vms/9001')).has('VM.Migrate'));
    const storage = await api.getStorageStatus('pv1-1', 'proxy-seeds');
    assert.deepEqual(
      [storage.enabled, storage.active, storage.shared, storage.content],
      [true, true, false, ['iso']],
    );
    assert.equal(await api.tokenId(), 'proxy-operator@pve!operator');
  });

  it('a VM is cloned, seeded, configured, grown, started, asked, stopped and destroyed', async () => {
    const template = await api.getVmConfig('pv1-1', 9001);
    assert.equal(template.values.template, '1');
    const disk = /^local-lvm:[^,]+/.exec(template.values.scsi0 ?? '')?.[0] ?? '';
    assert.equal(await api.getVolumeSize('pv1-1', 'local-lvm', disk), 3 * 1024 ** 3);

    const clone = await api.clone('pv1-1', 9001, {
      newid: vmid,
      name: 'proxy-a',
      description: 'proxy-operator-managed=true\nproxy-operator-uid=1; ü',
    });
    assert.equal(upidNode(clone), 'pv1-1');
    const running = await api.listTasks('pv1-1', { type: 'qmclone', activeOnly: true });
    assert.deepEqual(
      running.map((row) => [row.upid, row.user]),
      [[clone, 'proxy-operator@pve!operator']],
    );
    assert.equal(await ended(clone), 'OK');
    assert.match((await api.getTaskLog(clone, 5)).join('\n'), new RegExp(`with ID ${vmid}`));

    const image = Buffer.alloc(375_296, 1);
    const upload = await api.uploadIso('pv1-1', 'proxy-seeds', 'proxy-a-seed.iso', image);
    assert.equal(await ended(upload), 'OK');
    const isos = await api.listIsos('pv1-1', 'proxy-seeds');
    assert.deepEqual(isos, [{ volid, size: image.length, content: 'iso' }]);
    assert.ok(simulator.isos().some((iso) => iso.bytes?.equals(image)));

    const cloned = await api.getVmConfig('pv1-1', vmid);
    assert.equal(cloned.values.description, 'proxy-operator-managed=true\nproxy-operator-uid=1; ü');
    await api.setVmConfig(
      'pv1-1',
      vmid,
      {
        cores: '1',
        memory: '1024',
        agent: '1',
        tags: 'proxy_operator',
        ide2: `${volid},media=cdrom`,
      },
      { delete: ['protection'], digest: cloned.digest },
    );
    const stale = api.setVmConfig('pv1-1', vmid, { cores: '4' }, { digest: cloned.digest });
    assert.equal(asWords(await failureOf(stale)), 'Transient ConfigChanged proxy');
    const configured = await api.getVmConfig('pv1-1', vmid);
    assert.equal(configured.values.tags, 'proxy_operator');
    assert.match(configured.values.ide2 ?? '', new RegExp(`^${volid},`));

    assert.equal(
      await ended(await api.resize('pv1-1', vmid, 'scsi0', '20G', configured.digest)),
      'OK',
    );
    assert.equal(await ended(await api.start('pv1-1', vmid)), 'OK');
    const status = await api.getVmStatus('pv1-1', vmid);
    assert.deepEqual([status.status, status.qmpstatus], ['running', 'running']);
    const mac = /virtio=([0-9A-F:]+)/.exec(configured.values.net0 ?? '')?.[1]?.toLowerCase();
    await eventually(async () => {
      const interfaces = await api.getAgentInterfaces('pv1-1', vmid);
      const own = interfaces?.find((entry) => entry.mac?.toLowerCase() === mac);
      assert.ok(own?.addresses.some(({ family }) => family === 'ipv4'));
    });

    const early = api.destroy('pv1-1', vmid, { destroyUnreferencedDisks: true });
    assert.equal((await failureOf(early)).facts.goBack, true);
    assert.equal(await ended(await api.stop('pv1-1', vmid)), 'OK');
    const destroy = await api.destroy('pv1-1', vmid, { destroyUnreferencedDisks: true });
    assert.equal(await ended(destroy), 'OK');
    assert.ok(!simulator.vms().some((vm) => vm.vmid === vmid));
  });

  it('a seed is deleted, and deleting it again is no failure', async () => {
    for (const _ of [1, 2]) {
      const upid = await api.deleteVolume('pv1-1', 'proxy-seeds', volid);
      if (upid !== null) assert.equal(await ended(upid), 'OK');
    }
    assert.deepEqual(await api.listIsos('pv1-1', 'proxy-seeds'), []);
  });

  it('a running task can be aborted', async () => {
    simulator.setTimeScale(0.2);
    const clone = await api.clone('pv1-1', 9001, { newid: 100_200, name: 'b', description: '' });
    await api.abortTask(clone);
    simulator.setTimeScale(0.01);
    assert.match(await ended(clone), /interrupt/);
  });

  it('failures come back classified', async () => {
    const nothing = api.getVmConfig('pv1-1', 99_999);
    assert.equal(asWords(await failureOf(nothing)), 'NotFound VmVanished proxy');
    const elsewhere = api.getVmConfig('pv1-2', 9001);
    assert.equal(asWords(await failureOf(elsewhere)), 'NotFound VmVanished proxy');
    const wrongNode = api.getVmStatus('pv9', 9001);
    assert.equal(asWords(await failureOf(wrongNode)), 'Transient Unreachable provider');
    const storage = api.getStorageStatus('pv1-1', 'nosuch');
    assert.equal(asWords(await failureOf(storage)), 'Permanent StorageUnavailable provider');
    const upid = 'UPID:pv1-1:0000FFFF:0001C799:6B0C27BD:qmstart:110:proxy-operator@pve!operator:';
    assert.equal(asWords(await failureOf(api.getTask(upid))), 'Transient TaskUnknown proxy');
    const local = api.deleteVolume('pv1-1', 'local', 'local:iso/x.iso');
    const error = await failureOf(local);
    assert.equal(asWords(error), 'Permanent Forbidden provider');
    assert.match(error.facts.remedy ?? '', /pveum role modify .*Datastore\.Allocate/);
  });

  it('a dead node is Unreachable, and its rows say nothing about it', async () => {
    simulator.setNode('pv1-2', { state: 'dead' });
    const read = api.getVmConfig('pv1-2', 9002);
    assert.equal(asWords(await failureOf(read)), 'Transient Unreachable provider');
    const write = await failureOf(api.start('pv1-2', 9002));
    assert.equal(write.facts.httpStatus, 595);
    assert.equal(write.facts.outcomeUnknown, undefined);
  });
});
