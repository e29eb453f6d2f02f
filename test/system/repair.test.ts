/** Many VMs that vanish behind the operator's back; what becomes of one, `longLife.test.ts` tells. */
import assert from 'node:assert/strict';
import { simulatedVms } from './support/cluster.ts';
import { editConfig, withSettings } from './support/config.ts';
import { managedSpec, proxyManifest, until, untilProxy, untilReady } from './support/proxies.ts';
import { onOneStack } from './support/suite.ts';

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
