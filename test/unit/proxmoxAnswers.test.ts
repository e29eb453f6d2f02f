/** Captured answers of Proxmox VE, read through the seam. */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { ProxmoxApi } from '../../activities/proxmox/api.ts';
import { createProxmoxApi } from '../../activities/proxmox/client.ts';

const captures = fileURLToPath(new URL('../../testdata/pve/9.2/', import.meta.url));
const digest = 'a'.repeat(40);

const exchangeSchema = z.looseObject({
  request: z.looseObject({
    method: z.string(),
    path: z.string(),
    params: z.record(z.string(), z.unknown()).nullish(),
  }),
  response: z.looseObject({ status: z.int(), body: z.string() }),
});
type Exchange = z.infer<typeof exchangeSchema>;

/** The API as if every request were answered with `data`. */
function answeredWith(data: unknown): ProxmoxApi {
  const http = {
    send: () => Promise.resolve(data),
    tokenId: () => Promise.resolve('a@pve!b'),
    close: () => Promise.resolve(),
  };
  const call = { signal: new AbortController().signal, writesUntilMs: Number.MAX_SAFE_INTEGER };
  return createProxmoxApi('lab', http, call);
}

/** Captured file name to exchange, for 200 answers only. */
function goodExchanges(): Map<string, Exchange> {
  const found = new Map<string, Exchange>();
  for (const name of readdirSync(captures).filter((one) => one.endsWith('.json'))) {
    const parsed = exchangeSchema.safeParse(
      JSON.parse(readFileSync(`${captures}/${name}`, 'utf8')),
    );
    if (parsed.success && parsed.data.response.status === 200) found.set(name, parsed.data);
  }
  return found;
}

function dataOf(exchange: Exchange): unknown {
  return z.looseObject({ data: z.unknown() }).parse(JSON.parse(exchange.response.body)).data;
}

type Reader = (api: ProxmoxApi) => Promise<unknown>;
const upid = 'UPID:pve1:00000DDA:0002934D:6B0C29C7:qmdestroy:103:proxy-operator@pve!operator:';

/** Requests the seam sends, by method and path. */
const readers: [string, RegExp, Reader][] = [
  ['GET', /^\/version$/, (api) => api.getVersion()],
  ['GET', /^\/nodes$/, (api) => api.listNodes()],
  ['GET', /^\/nodes\/[^/]+\/status$/, (api) => api.getNodeStatus('pve1')],
  ['GET', /\/qemu\/\d+\/config$/, (api) => api.getVmConfig('pve1', 101)],
  ['GET', /\/qemu\/\d+\/status\/current$/, (api) => api.getVmStatus('pve1', 101)],
  ['GET', /\/agent\/network-get-interfaces$/, (api) => api.getAgentInterfaces('pve1', 101)],
  ['GET', /\/storage\/[^/]+\/status$/, (api) => api.getStorageStatus('pve1', 'proxy-seeds')],
  ['GET', /\/storage\/[^/]+\/content$/, (api) => api.listIsos('pve1', 'proxy-seeds')],
  ['GET', /^\/nodes\/[^/]+\/tasks$/, (api) => api.listTasks('pve1', {})],
  ['GET', /\/tasks\/[^/]+\/status$/, (api) => api.getTask(upid)],
  ['GET', /\/tasks\/[^/]+\/log$/, (api) => api.getTaskLog(upid, 50)],
  ['GET', /^\/access\/permissions$/, (api) => api.getPermissions('/storage/proxy-seeds')],
  ['POST', /\/qemu\/\d+\/clone$/, (api) => api.clone('pve1', 9001, { newid: 200, name: 'a', description: '' })], // prettier-ignore
  ['POST', /\/status\/start$/, (api) => api.start('pve1', 101)],
  ['POST', /\/status\/stop$/, (api) => api.stop('pve1', 101)],
  ['PUT', /\/qemu\/\d+\/config$/, (api) => api.setVmConfig('pve1', 101, {}, { digest })],
  ['PUT', /\/resize$/, (api) => api.resize('pve1', 101, 'scsi0', '1G', digest)],
  ['DELETE', /\/qemu\/\d+$/, (api) => api.destroy('pve1', 101, { destroyUnreferencedDisks: true })], // prettier-ignore
  ['POST', /\/upload$/, (api) => api.uploadIso('pve1', 'proxy-seeds', 'a.iso', new Uint8Array(1))],
  ['DELETE', /\/content\//, (api) => api.deleteVolume('pve1', 'proxy-seeds', 'proxy-seeds:iso/a')],
  ['DELETE', /\/tasks\//, (api) => api.abortTask(upid)],
];

function readerOf({ request }: Exchange): Reader | null {
  const path = request.path.replace(/^\/api2\/json/, '');
  if (path === '/cluster/resources' && request.params?.type === 'vm') return (api) => api.listVms();
  if (path === '/access/permissions' && !request.params) return (api) => api.listPermissions();
  return readers.find(([method, end]) => method === request.method && end.test(path))?.[2] ?? null;
}

function captured(name: string): ProxmoxApi {
  const exchange = goodExchanges().get(`${name}.json`);
  assert.ok(exchange, `${name} is not among the captures`);
  return answeredWith(dataOf(exchange));
}

describe('captured answers', () => {
  it('every answer to a request of ours is understood', async () => {
    const used = new Set<Reader>();
    let count = 0;
    for (const [name, exchange] of goodExchanges()) {
      const read = readerOf(exchange);
      if (read === null) continue;
      used.add(read);
      count += 1;
      await assert.doesNotReject(read(answeredWith(dataOf(exchange))), name);
    }
    assert.ok(count > 300, `only ${count} answers`);
    const unused = readers.filter(([, , read]) => !used.has(read));
    assert.deepEqual(
      unused.map(([method, end]) => `${method} ${end.source}`),
      [],
    );
  });

  it('a running VM', async () => {
    assert.deepEqual(await captured('07-status-current-running').getVmStatus('pve1', 101), {
      status: 'running',
      qmpstatus: 'running',
      name: 'egress-a',
      haManaged: false,
    });
  });

  it('a VM that was cloned a moment ago has neither name nor template flag', async () => {
    const rows = await captured('16-resources-right-after-clone-ok').listVms();
    const fresh = rows.filter((row) => row.status === 'unknown');
    assert.ok(fresh.length > 0);
    for (const row of fresh) {
      assert.ok(!('name' in row) && !('template' in row), JSON.stringify(row));
    }
  });

  it('a config has every key as text, numbers too', async () => {
    const config = await captured('03-config-full-clone').getVmConfig('pve1', 110);
    assert.match(config.digest, /^[0-9a-f]{40}$/);
    assert.equal(config.values.digest, undefined);
    assert.ok(Object.values(config.values).every((value) => typeof value === 'string'));
    assert.equal(config.values.kvm, '0');
  });

  it('a running task belongs to its token like a finished one', async () => {
    const [active] = await captured('20-tasks-active').listTasks('pve1', { activeOnly: true });
    assert.equal(active?.user, 'proxy-operator@pve!operator');
    assert.ok(active !== undefined && !('endtime' in active));
    const ended = await captured('10-task-list-warnings').listTasks('pve1', {});
    assert.ok(ended.length > 0);
    for (const row of ended) assert.equal(row.user, 'proxy-operator@pve!operator');
  });

  it('privileges are those of the path asked for', async () => {
    const api = captured('01-access-permissions');
    assert.deepEqual(
      [...(await api.getPermissions('/storage/proxy-seeds')).keys()].sort(),
      ['Datastore.Allocate', 'Datastore.AllocateSpace', 'Datastore.AllocateTemplate', 'Datastore.Audit'], // prettier-ignore
    );
    assert.deepEqual([...(await api.getPermissions('/vms/1')).keys()], []);
  });

  it('all privileges by path, with whether paths below have them too', async () => {
    const table = await captured('01-access-permissions-all').listPermissions();
    assert.equal(table.get('/')?.get('SDN.Use'), true);
    assert.equal(table.get('/')?.has('Datastore.Allocate'), false);
    assert.equal(table.get('/storage/proxy-seeds')?.get('Datastore.Allocate'), true);
    assert.equal(table.get('/storage/proxy-seeds')?.has('VM.Audit'), false);
    assert.deepEqual([...(await captured('16-privsep-permissions').listPermissions()).keys()], ['/vms']); // prettier-ignore
  });

  it('the kernel of a node', async () => {
    const api = captured('30-node-status-pve2-via-pve1');
    assert.deepEqual(await api.getNodeStatus('pve2'), { kernel: '6.18.44-fc-v669' });
    const old = answeredWith({ kversion: 'Linux 6.2.16-3-pve #1 SMP PREEMPT_DYNAMIC' });
    assert.deepEqual(await old.getNodeStatus('pve2'), { kernel: '6.2.16-3-pve' });
  });

  it('a storage that is disabled on a node', async () => {
    const status = await captured('02-storage-status-disabled').getStorageStatus('pve1', 'x');
    assert.deepEqual([status.enabled, status.active], [false, false]);
  });

  it('the log of a task', async () => {
    assert.deepEqual(await captured('10-task-log-unknown-upid').getTaskLog(upid, 50), [
      'unable to open file - No such file or directory',
    ]);
  });
});
