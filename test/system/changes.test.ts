/** What is done to a Proxy during its life: another spec, a deletion at a bad moment, Retain, pause. */
import assert from 'node:assert/strict';
import type { Proxy } from '../../api/proxy.ts';
import { eventually } from '../support/eventually.ts';
import { simulatedTasks } from './support/cluster.ts';
import { withSettings } from './support/config.ts';
import {
  conditionOf,
  discover,
  eventsOf,
  expectNothingLeft,
  managedSpec,
  onlyVmOf,
  proxyManifest,
  readProxy,
  seedsOf,
  untilProxy,
  untilReady,
  vmsOf,
} from './support/proxies.ts';
import type { SystemStack } from './support/stack.ts';
import { onOneStack } from './support/suite.ts';

const setting = {
  stack: {
    temporalDb: 'memory',
    providersConfig: withSettings({ maxClones: 8, maxDestroys: 8 }),
  },
  concurrency: 6,
} as const;
const nowhere = { zone: 'pv1-1', machineType: 'small', image: 'debian-99' };

onOneStack('a Proxy whose spec or fate changes', setting, (story) => {
  for (const replaceStrategy of ['CreateFirst', 'DeleteFirst']) {
    story(`${replaceStrategy}: a VM that cannot be replaced serves on`, async (stack) => {
      const name = `irreplaceable-${replaceStrategy.toLowerCase()}`;
      await stack.apply(proxyManifest(name, managedSpec({ replaceStrategy })));
      const before = await untilReady(stack, name);
      const broken = managedSpec({ replaceStrategy, placement: nowhere });
      await stack.apply(proxyManifest(name, broken));
      const stalled = await untilProxy(stack, name, 'be stalled', (proxy) => {
        return conditionOf(proxy, 'Stalled').reason === 'ReplacementFailed';
      });
      const { phase, vmid, ip, message } = stalled.status;
      assert.deepEqual([phase, vmid, ip], ['Ready', before.status.vmid, before.status.ip]);
      assert.match(message, /placement\.image "debian-99" is not in proxmox\.templates/);
      assert.equal(conditionOf(stalled, 'Ready').status, 'True');
      assert.ok((await discover(stack)).some((endpoint) => endpoint.name === name));

      await stack.apply(proxyManifest(name, managedSpec({ replaceStrategy })));
      const after = await untilProxy(stack, name, 'be settled again', (proxy) => {
        return conditionOf(proxy, 'Stalled').status === 'False' && proxy.status.message === '';
      });
      assert.equal((await onlyVmOf(stack, after)).vmid, before.status.vmid);
      await remove(stack, after);
    });
  }

  story('a deletion during the clone waits for the clone and removes it', async (stack) => {
    const name = 'demo-clone-slow';
    await stack.apply(proxyManifest(name, managedSpec()));
    const proxy = await untilProxy(stack, name, 'be cloned', async ({ status }) => {
      return status.vmid !== null && (await runningClones(stack, status.vmid)) === 1;
    });
    await stack.kubectl('delete', 'px', name);
    await expectNothingLeft(stack, proxy);
    const ends = (await clonesTo(stack, proxy.status.vmid)).map(({ exitstatus }) => exitstatus);
    assert.deepEqual(ends, ['OK'], 'the clone was neither aborted nor repeated');
  });

  story(
    'Retain: the VM stays with its seed when its Proxy goes, and its mark says so',
    async (stack) => {
      const name = 'retained';
      await stack.apply(proxyManifest(name, managedSpec()));
      const proxy = await untilReady(stack, name);
      const mark = async (): Promise<string> =>
        (await onlyVmOf(stack, proxy)).config['description'] ?? '';
      assert.match(await mark(), /^proxy-operator-deletion-policy=Delete$/m);
      const patch = '{"spec":{"deletionPolicy":"Retain"}}';
      await stack.kubectl('patch', 'px', name, '--type=merge', '-p', patch);
      await eventually(
        async () => /^proxy-operator-deletion-policy=Retain$/m.test(await mark()),
        60_000,
        250,
      );
      assert.match(await mark(), /^proxy-operator-managed=true$/m);
      await stack.kubectl('delete', 'px', name);
      assert.ok((await onlyVmOf(stack, proxy)).running);
      assert.match(await mark(), /^proxy-operator-managed=retained$/m);
      assert.match(await mark(), /^proxy-operator-deletion-policy=Retain$/m);
      assert.deepEqual(await seedsOf(stack, proxy), [`pv1-1 ${proxy.status.vmName}-seed.iso`]);
      const events = await eventsOf(stack, proxy);
      assert.ok(events.some(({ reason }) => reason === 'VmRetained'));
    },
  );

  story('Retain does not keep a VM that never served', async (stack) => {
    const name = 'demo-proxy-down';
    await stack.apply(proxyManifest(name, managedSpec({ deletionPolicy: 'Retain' })));
    const proxy = await untilProxy(stack, name, 'have an address', ({ status }) => {
      return status.phase === 'Running';
    });
    await remove(stack, proxy);
  });

  story('a paused Proxy gets no VM until it is resumed', async (stack) => {
    const name = 'paused';
    await stack.apply(proxyManifest(name, managedSpec({ paused: true })));
    await untilProxy(stack, name, 'say that it is paused', ({ status }) => {
      return status.message.includes('paused') && status.observedGeneration === 1;
    });
    assert.deepEqual(await vmsOf(stack, await readProxy(stack, name)), []);
    await stack.kubectl('patch', 'px', name, '--type=merge', '-p', '{"spec":{"paused":false}}');
    const proxy = await untilReady(stack, name);

    await stack.kubectl('patch', 'px', name, '--type=merge', '-p', '{"spec":{"paused":true}}');
    await untilProxy(stack, name, 'be paused again', ({ status }) => {
      return status.message.includes('paused');
    });
    assert.equal((await readProxy(stack, name)).status.phase, 'Ready', 'it serves on');
    await stack.kubectl('delete', 'px', name, '--wait=false');
    const waiting = await untilProxy(stack, name, 'wait with its deletion', (object) => {
      return conditionOf(object, 'Reconciling').reason === 'DeletionPaused';
    });
    assert.equal(waiting.status.phase, 'Deleting');
    assert.ok((await onlyVmOf(stack, proxy)).running, 'nothing is changed on Proxmox');
    await stack.kubectl('patch', 'px', name, '--type=merge', '-p', '{"spec":{"paused":false}}');
    await expectNothingLeft(stack, proxy);
  });
});

async function remove(stack: SystemStack, proxy: Proxy): Promise<void> {
  await stack.kubectl('delete', 'px', proxy.metadata.name);
  await expectNothingLeft(stack, proxy);
}

async function clonesTo(
  stack: SystemStack,
  vmid: number | null,
): Promise<Awaited<ReturnType<typeof simulatedTasks>>> {
  const clones = await simulatedTasks(stack.simulator, 'qmclone');
  return clones.filter(({ log }) => log.some((line) => line.endsWith(`with ID ${vmid}`)));
}

async function runningClones(stack: SystemStack, vmid: number): Promise<number> {
  return (await clonesTo(stack, vmid)).filter(({ running }) => running).length;
}
