/** The judge of the random walks can tell what is forbidden: requests are sent that no operator may send. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { Agent, request } from 'undici';
import type { Vm } from '../simulator/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { tokenSecret } from '../support/stepFixture.ts';
import { makeCa, type TestCa } from '../support/tls.ts';
import { startCluster, type Cluster } from './walk/cluster.ts';
import type { InstallationName } from './walk/operations.ts';

describe('the ledger of a walk', () => {
  let ca: TestCa;
  let agent: Agent;
  let cluster: Cluster;

  before(async () => {
    ca = await makeCa();
    agent = new Agent({ connect: { ca: ca.caPem } });
    cluster = await startCluster(await ca.issue(['127.0.0.1']));
  });
  after(async () => {
    await agent.close();
    await cluster.close();
    rmSync(ca.dir, { recursive: true });
  });

  async function send(
    who: InstallationName,
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    body: string | null = null,
  ): Promise<string[]> {
    const known = cluster.ledger.harm.length;
    const authorization = `PVEAPIToken=proxy-operator@pve!${who}=${tokenSecret}`;
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    const { body: answer } = await request(`${cluster.simulator.url}/api2/json${path}`, {
      method,
      headers: { authorization, ...(body === null ? {} : type) },
      body,
      dispatcher: agent,
    });
    await answer.dump();
    return cluster.ledger.harm.slice(known);
  }

  async function cloned(who: InstallationName, vmid: number): Promise<Vm> {
    const sent = await send(who, 'POST', '/nodes/pve1/qemu/9001/clone', `newid=${vmid}&name=vm-${vmid}&full=1`); // prettier-ignore
    assert.deepEqual(sent, []);
    await eventually(() => cluster.simulator.tasks.every(({ running }) => !running));
    const vm = cluster.simulator.cluster.vms.get(vmid);
    assert.ok(vm);
    return vm;
  }

  it('lets an installation write to what it cloned, and nobody else', async () => {
    await cloned('alpha', 100_050);
    const path = '/nodes/pve1/qemu/100050/config';
    assert.deepEqual(await send('alpha', 'PUT', path, 'cores=2'), []);
    assert.deepEqual(await send('beta', 'GET', path), []);
    assert.match((await send('beta', 'PUT', path, 'cores=4')).join(), /it is of alpha/);
    assert.match((await send('beta', 'POST', '/nodes/pve1/qemu/100050/status/start')).join(), /it is of alpha/); // prettier-ignore
  });

  it('lets nobody write to a template, a container, a VM or a file that was made by hand', async () => {
    const paths = ['qemu/9001', 'lxc/100003', 'qemu/100020'];
    for (const path of paths) {
      assert.match((await send('alpha', 'POST', `/nodes/pve1/${path}/status/stop`)).join(), /it is of hand/); // prettier-ignore
    }
    assert.match((await send('alpha', 'POST', '/nodes/pve1/qemu/100020/clone', 'newid=100060')).join(), /only templates/); // prettier-ignore
    const file = 'content/proxy-seeds:iso%2Fdebian-13.iso';
    assert.match((await send('beta', 'DELETE', `/nodes/pve1/storage/proxy-seeds/${file}`)).join(), /the file is that of hand/); // prettier-ignore
    await eventually(() => assert.match(cluster.changes().join(), /debian-13.iso on pve1 is gone/));
  });

  it('lets nobody end a task of another', async () => {
    await cloned('beta', 100_051);
    const upid = cluster.simulator.tasks.at(-1)?.upid ?? '';
    assert.match((await send('alpha', 'DELETE', `/nodes/pve1/tasks/${upid}`)).join(), /another one's task/); // prettier-ignore
    assert.deepEqual(await send('beta', 'DELETE', `/nodes/pve1/tasks/${upid}`), []);
  });

  it('takes a VM for the administrator’s once he has changed its name or mark', async () => {
    const vm = await cloned('alpha', 100_052);
    const entry = cluster.ledger.entryOf(vm);
    assert.ok(entry);
    const path = '/nodes/pve1/qemu/100052/config';
    entry.takenAtMs = Date.now();
    assert.deepEqual(await send('alpha', 'PUT', path, 'cores=2'), [], 'it was on its way');
    entry.takenAtMs = Date.now() - 60_000;
    assert.match((await send('alpha', 'PUT', path, 'cores=4')).join(), /made it his own/);
  });

  it('takes a restored backup for the Proxy’s VM only when it stands alone under its name', async () => {
    const original = await cloned('alpha', 100_053);
    const copy = cluster.place({
      pick: 54,
      type: 'qemu',
      node: 'pve1',
      config: new Map(original.config),
      story: 'a backup',
      restoredFrom: 'alpha',
    });
    const path = `/nodes/pve1/qemu/${copy?.vmid}/config`;
    assert.match((await send('alpha', 'PUT', path, 'cores=2')).join(), /a backup/);
    cluster.simulator.removeVm(original.vmid);
    assert.deepEqual(await send('alpha', 'PUT', path, 'cores=3'), []);
  });
});
