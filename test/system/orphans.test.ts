/** What a Proxy leaves behind is found and collected; what is not provably the operator's is never touched. */
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { request } from 'undici';
import type { Proxy } from '../../api/proxy.ts';
import { claimPort } from '../../deploy/dev/ports.ts';
import { installationHex } from '../../activities/vm/identity.ts';
import { Cable } from './support/cable.ts';
import { simulatedRequests, simulatedVms } from './support/cluster.ts';
import { edited, editConfig, withSettings } from './support/config.ts';
import {
  conditionOf,
  managedSpec,
  onlyVmOf,
  proxyManifest,
  readProxy,
  seedsOf,
  until,
  untilProxy,
  untilReady,
  vmsOf,
} from './support/proxies.ts';
import {
  abandon,
  collectionRound,
  forceDelete,
  healthEvents,
  outcomeOf,
  providerHealth,
} from './support/rounds.ts';
import type { SystemStack } from './support/stack.ts';
import { onOneStack } from './support/suite.ts';

const port = await claimPort();
/** Between the operator and Proxmox VE. */
const cable = new Cable(port.port);
const settings = { gc: { mode: 'delete', graceMinutes: 0 }, maxClones: 8, maxDestroys: 8 };
const setting = {
  stack: {
    temporalDb: 'memory',
    providersConfig: edited(({ providers }) => {
      for (const { proxmox } of providers) {
        Object.assign(proxmox, { ...settings, url: `https://127.0.0.1:${port.port}` });
      }
    }),
  },
} as const;

after(() => {
  cable.unplug();
  port.release();
});

async function ready(stack: SystemStack, ...names: string[]): Promise<Proxy[]> {
  for (const name of names) await stack.apply(proxyManifest(name, managedSpec()));
  return Promise.all(names.map((name) => untilReady(stack, name)));
}

async function untilCollected(stack: SystemStack, proxy: Proxy): Promise<void> {
  await until(stack, `${proxy.metadata.name} should be collected`, async () => {
    assert.deepEqual(await vmsOf(stack, proxy), []);
    assert.deepEqual(await seedsOf(stack, proxy), []);
  });
}

async function orphansMetric(stack: SystemStack, kind: string): Promise<string | undefined> {
  const { body } = await request(`http://127.0.0.1:${stack.ports.workerMetrics}/metrics`);
  const name = `proxy_operator_gc_orphans{provider="proxmox-local",kind="${kind}"}`;
  return (await body.text())
    .split('\n')
    .find((line) => line.startsWith(name))
    ?.slice(name.length + 1);
}

onOneStack('orphans', setting, (story) => {
  story('what was given up while Proxmox was down is collected when it is back', async (stack) => {
    await cable.plugIn(stack.ports.simulator);
    const [lost, stays] = await ready(stack, 'lost', 'stays');
    assert.ok(lost && stays);

    cable.unplug();
    await stack.kubectl('delete', 'px', 'lost', '--wait=false');
    await untilProxy(stack, 'lost', 'wait with its deletion', (object) => {
      return conditionOf(object, 'Reconciling').reason === 'Unreachable';
    });
    await forceDelete(stack, 'lost');
    assert.match((await collectionRound(stack)).problem ?? '', /^Unreachable/);
    const shown = (await providerHealth(stack)).orphans;
    assert.match(shown?.message ?? '', /^Unreachable/);

    await cable.plugIn(stack.ports.simulator);
    const vm = await onlyVmOf(stack, lost);
    const { vms } = await collectionRound(stack);
    assert.deepEqual(vms.map(({ vmid, owner }) => `${vmid} ${owner.name}`), [`${vm.vmid} lost`]); // prettier-ignore
    assert.equal((await onlyVmOf(stack, lost)).running, true, 'seen once is not enough');
    assert.equal(await orphansMetric(stack, 'vm'), '1');
    await collectionRound(stack);
    await untilCollected(stack, lost);
    assert.equal(await outcomeOf(stack, lost), 'Collected');

    const { vms: left, seeds } = await collectionRound(stack);
    assert.deepEqual([left, seeds], [[], []]);
    const { orphans } = await providerHealth(stack);
    assert.deepEqual([orphans?.vms, orphans?.seeds, orphans?.alarm], [0, 0, null]);
    assert.match((await healthEvents(stack, 'OrphanFound')).join(), new RegExp(`VM ${vm.vmid} `));
    assert.equal((await healthEvents(stack, 'OrphanCollected')).length, 1);
    assert.equal((await readProxy(stack, 'stays')).status.phase, 'Ready');
    assert.ok((await onlyVmOf(stack, stays)).running);
  });

  story('what is not provably ours is never touched, and what is to stay stays', async (stack) => {
    const names = ['orphan', 'theirs', 'handmade', 'retained'] as const;
    const [orphan, theirs, handmade, retained] = await ready(stack, ...names);
    assert.ok(orphan && theirs && handmade && retained);
    for (const name of names) await abandon(stack, name);
    await editMark(stack, theirs, (mark) => mark.replace(/(installation=).*/, '$1elsewhere'));
    await rename(stack, theirs, (name) => name.replace(/-[0-9a-f]{6}(?=-[0-9a-f]{8}-)/, `-${installationHex('elsewhere')}`)); // prettier-ignore
    await editMark(stack, handmade, () => 'made by hand');
    await rename(stack, handmade, () => 'web-1');
    await editMark(stack, retained, (mark) => mark.replace(/(deletion-policy=).*/, '$1Retain'));
    await stack.simulator.admin('POST', '/stats');
    const kept = [theirs, handmade, retained].map(({ status }) => status.vmid ?? 0);
    const before = await statesOf(stack, kept);
    await stack.simulator.admin('DELETE', '/requests');

    await collectionRound(stack);
    const { vms } = await collectionRound(stack);
    assert.match(vms.find(({ vmid }) => vmid === retained.status.vmid)?.outlook ?? '', /is kept/);
    await untilCollected(stack, orphan);
    await collectionRound(stack);

    assert.deepEqual(await statesOf(stack, kept), before);
    const written = (await simulatedRequests(stack.simulator)).filter(({ method }) => method !== 'GET'); // prettier-ignore
    for (const vmid of kept) {
      const touching = written.filter(({ path }) => path.includes(`/${vmid}`));
      assert.deepEqual(touching, [], `VM ${vmid}`);
    }
    assert.ok(written.some(({ path }) => path.endsWith(`/qemu/${orphan.status.vmid}`)));
    for (const vmid of kept) await stack.simulator.admin('DELETE', `/vms/${vmid}`);
  });

  story('in report mode nothing is removed; many at once wait for a person', async (stack) => {
    const proxies = await ready(stack, 'one', 'two');
    editConfig(stack, withSettings({ gc: { mode: 'report', graceMinutes: 0 } }));
    for (const name of ['one', 'two']) await abandon(stack, name);
    for (let round = 0; round < 3; round += 1) await collectionRound(stack);
    for (const proxy of proxies) await onlyVmOf(stack, proxy);
    assert.equal((await providerHealth(stack)).orphans?.vms, 2);

    editConfig(stack, withSettings({ gc: { mode: 'delete', graceMinutes: 0 } }));
    await until(stack, 'the mode should be in force', async () => {
      return (await collectionRound(stack)).mode === 'delete';
    });
    const { alarm } = await collectionRound(stack);
    assert.equal(alarm?.kind, 'MassAbsence');
    assert.equal((await providerHealth(stack)).orphans?.alarm, alarm?.id);
    const [held] = await healthEvents(stack, 'CollectionHeld');
    assert.ok(held?.includes(`confirmAbsence: ${alarm?.id}`), held);
    for (const proxy of proxies) await onlyVmOf(stack, proxy);

    editConfig(stack, withSettings({ confirmAbsence: alarm?.id }));
    await until(stack, 'the confirmation should count', async () => {
      return (await collectionRound(stack)).alarm === null;
    });
    for (const proxy of proxies) await untilCollected(stack, proxy);
  });
});

async function editMark(
  stack: SystemStack,
  proxy: Proxy,
  change: (mark: string) => string,
): Promise<void> {
  const vm = await atVmid(stack, proxy);
  const description = change(vm.config['description'] ?? '');
  await stack.simulator.admin('POST', `/vms/${vm.vmid}/config`, { description });
}

async function rename(
  stack: SystemStack,
  proxy: Proxy,
  change: (name: string) => string,
): Promise<void> {
  const vm = await atVmid(stack, proxy);
  await stack.simulator.admin('POST', `/vms/${vm.vmid}/config`, { name: change(vm.config['name'] ?? '') }); // prettier-ignore
}

async function atVmid(
  stack: SystemStack,
  { status }: Proxy,
): Promise<Awaited<ReturnType<typeof simulatedVms>>[number]> {
  const vm = (await simulatedVms(stack.simulator)).find(({ vmid }) => vmid === status.vmid);
  assert.ok(vm, `VM ${status.vmid} is gone`);
  return vm;
}

async function statesOf(stack: SystemStack, vmids: number[]): Promise<unknown[]> {
  const vms = await simulatedVms(stack.simulator);
  return vmids.map((vmid) => vms.find((vm) => vm.vmid === vmid));
}
