/** What happens to a VM behind the operator's back: it is seen, mended where that is certain, and told by kubectl. */
import assert from 'node:assert/strict';
import type { Proxy } from '../../api/proxy.ts';
import { simulatedVms } from './support/cluster.ts';
import { editConfig, withSettings } from './support/config.ts';
import {
  conditionOf,
  discover,
  eventsOf,
  expectNothingLeft,
  managedSpec,
  onlyVmOf,
  proxyManifest,
  until,
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
  concurrency: 4,
} as const;

async function readyProxy(stack: SystemStack, name: string): Promise<Proxy> {
  await stack.apply(proxyManifest(name, managedSpec({ drainSeconds: 0 })));
  return untilReady(stack, name);
}

async function reasonsOf(stack: SystemStack, proxy: Proxy): Promise<string[]> {
  return (await eventsOf(stack, proxy)).map(({ reason }) => reason);
}

async function deleteWhole(stack: SystemStack, proxy: Proxy): Promise<void> {
  await stack.kubectl('delete', 'px', proxy.metadata.name, '--wait=false');
  await expectNothingLeft(stack, proxy);
}

onOneStack('a VM that changes behind the operator', setting, (story) => {
  story('is started again when somebody stopped it, and is not listed meanwhile', async (stack) => {
    const proxy = await readyProxy(stack, 'stopped');
    const { vmid } = await onlyVmOf(stack, proxy);
    await stack.simulator.admin('POST', `/vms/${vmid}/power-off`);
    const down = await untilProxy(
      stack,
      'stopped',
      'be Running',
      ({ status }) => status.phase === 'Running',
    );
    assert.equal(down.status.ip, proxy.status.ip);
    assert.ok(!(await discover(stack)).some(({ name }) => name === 'stopped'));
    await untilReady(stack, 'stopped');
    const vm = await onlyVmOf(stack, proxy);
    assert.deepEqual([vm.vmid, vm.running], [vmid, true]);
    const reasons = await reasonsOf(stack, proxy);
    assert.ok(reasons.includes('VmStopped') && reasons.includes('VmStarted'), reasons.join());
    await deleteWhole(stack, proxy);
  });

  story('is made again when somebody destroyed it', async (stack) => {
    const proxy = await readyProxy(stack, 'destroyed');
    const { vmid } = await onlyVmOf(stack, proxy);
    await stack.simulator.admin('DELETE', `/vms/${vmid}`);
    await until(stack, 'the loss should be told', async () =>
      (await reasonsOf(stack, proxy)).includes('VmVanished'),
    );
    await until(stack, 'another VM should be there', async () => {
      return (await vmsOf(stack, proxy)).length === 1;
    });
    await untilReady(stack, 'destroyed');
    assert.ok((await onlyVmOf(stack, proxy)).running);
    await deleteWhole(stack, proxy);
  });

  story('is followed to another node, Ready all the time', async (stack) => {
    const proxy = await readyProxy(stack, 'moved');
    const { vmid, node } = await onlyVmOf(stack, proxy);
    const target = node === 'pv1-1' ? 'pv1-2' : 'pv1-1';
    const watch = stack.watch(
      'get',
      'px',
      '--field-selector',
      'metadata.name=moved',
      '-o',
      'jsonpath={.status.phase}{"\\n"}',
    );
    await stack.simulator.admin('POST', `/vms/${vmid}/move`, { node: target });
    await untilProxy(stack, 'moved', `be on ${target}`, ({ status }) => status.node === target);
    await watch.stop();
    assert.deepEqual([...new Set(watch.lines().filter((line) => line !== ''))], ['Ready']);
    assert.ok((await reasonsOf(stack, proxy)).includes('VmMoved'));
    await deleteWhole(stack, proxy);
  });

  story('gets tag and agent option back, and is not restarted for it', async (stack) => {
    const proxy = await readyProxy(stack, 'edited');
    const { vmid, address } = await onlyVmOf(stack, proxy);
    await stack.simulator.admin('POST', `/vms/${vmid}/config`, { tags: 'web', agent: '0' });
    const told = await untilProxy(stack, 'edited', 'say so', (now) =>
      now.status.conditions.some(
        ({ type, status }) => type === 'AgentReachable' && status === 'False',
      ),
    );
    assert.equal(told.status.phase, 'Ready');
    assert.equal(conditionOf(told, 'AgentReachable').reason, 'AgentSilent');
    const vm = await onlyVmOf(stack, proxy);
    assert.deepEqual(
      [vm.config['tags'], vm.running, vm.address],
      ['proxy_operator;web', true, address],
    );
    // Pending until the VM is stopped and started; a plain read shows what is pending.
    const config = await stack.simulator.get(`/nodes/${vm.node}/qemu/${vmid}/config`);
    assert.match(JSON.stringify(config), /"agent":"1"/);
    await deleteWhole(stack, proxy);
  });
});

onOneStack('two VMs that vanish at once', { stack: { temporalDb: 'memory' } }, (story) => {
  story('are not made again before a person has confirmed it', async (stack) => {
    const healthCheck = { intervalSeconds: 5, timeoutSeconds: 5, failureThreshold: 1 };
    const names = ['one', 'two'];
    for (const name of names) {
      await stack.apply(proxyManifest(name, managedSpec({ drainSeconds: 0, healthCheck })));
    }
    for (const name of names) await untilReady(stack, name);
    for (const { vmid } of await simulatedVms(stack.simulator)) {
      await stack.simulator.admin('DELETE', `/vms/${vmid}`);
    }
    const alarm = (): Promise<string> =>
      stack.kubectl('get', 'ph', '-o', 'jsonpath={.items[*].status.alarm.id}');
    await until(stack, 'the alarm should be raised', async () => (await alarm()) !== '');
    for (const name of names) {
      await untilProxy(stack, name, 'be unhealthy', ({ status }) => status.healthy === false);
    }
    assert.deepEqual(await simulatedVms(stack.simulator), []);
    editConfig(stack, withSettings({ confirmAbsence: await alarm() }));
    for (const name of names) await untilReady(stack, name);
    await until(stack, 'the alarm should be over', async () => (await alarm()) === '');
  });
});
