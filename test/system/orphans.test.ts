/** What a Proxy leaves behind is found and collected; what is not provably the operator's is never touched. */
import assert from 'node:assert/strict';
import type { Proxy } from '../../api/proxy.ts';
import { installationHex } from '../../activities/vm/identity.ts';
import { simulatedRequests, simulatedVms } from './support/cluster.ts';
import { editConfig, withSettings } from './support/config.ts';
import { managedSpec, onlyVmOf, proxyManifest, until, untilReady } from './support/proxies.ts';
import {
  abandon,
  collectionRound,
  healthEvents,
  providerHealth,
  untilCollected,
} from './support/rounds.ts';
import type { SystemStack } from './support/stack.ts';
import { onOneStack } from './support/suite.ts';

const settings = { gc: { mode: 'delete', graceMinutes: 0 }, maxClones: 8, maxDestroys: 8 };
const setting = {
  stack: { temporalDb: 'memory', providersConfig: withSettings(settings) },
} as const;

async function ready(stack: SystemStack, ...names: string[]): Promise<Proxy[]> {
  for (const name of names) await stack.apply(proxyManifest(name, managedSpec()));
  return Promise.all(names.map((name) => untilReady(stack, name)));
}

onOneStack('orphans', setting, (story) => {
  story('what is not provably ours is never touched, and what is to stay stays', async (stack) => {
    const names = ['orphan', 'theirs', 'handmade', 'retained'] as const;
    const [orphan, theirs, handmade, retained] = await ready(stack, ...names);
    const [serving] = await ready(stack, 'serving');
    assert.ok(orphan && theirs && handmade && retained && serving);
    for (const name of names) await abandon(stack, name);
    await editMark(stack, theirs, (mark) => mark.replace(/(installation=).*/, '$1elsewhere'));
    await rename(stack, theirs, (name) => name.replace(/-[0-9a-f]{6}(?=-[0-9a-f]{8}-)/, `-${installationHex('elsewhere')}`)); // prettier-ignore
    await editMark(stack, handmade, () => 'made by hand');
    await rename(stack, handmade, () => 'web-1');
    await editMark(stack, retained, (mark) => mark.replace(/(deletion-policy=).*/, '$1Retain'));
    await stack.simulator.admin('POST', '/stats');
    const kept = [theirs, handmade, retained, serving].map(({ status }) => status.vmid ?? 0);
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
    await stack.kubectl('delete', 'px', 'serving');
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
