/** Health of providers as `kubectl`, metrics, Temporal and the Proxies see it, and providers that come and go. */
import assert from 'node:assert/strict';
import { providerHealthStatusSchema, type ProviderTarget } from '../../api/providerHealth.ts';
import { providerWorkflowId } from '../../workflows/contract/messages.ts';
import { z } from 'zod';
import { edited, editConfig, withSettings } from './support/config.ts';
import { simulatedVms } from './support/cluster.ts';
import { targetsUp, untilShown } from './support/health.ts';
import { managedSpec, proxyManifest, until, untilProxy, untilReady } from './support/proxies.ts';
import type { SystemStack } from './support/stack.ts';
import { onOneStack } from './support/suite.ts';

const home = 'proxmox-local';
const setting = {
  stack: {
    temporalDb: 'memory',
    workerFlags: ['--provider-check-interval=1s', '--provider-check-timeout=5s'],
  },
} as const;

onOneStack('providers are checked', setting, (story) => {
  story('every node shows with its facts, and the columns add up', async (stack) => {
    await untilShown(stack, home, 'proxmox 2/2 Reachable');
    const targets = await targetsOf(stack, home);
    assert.deepEqual(
      targets.map(({ name }) => name),
      ['pv1-1', 'pv1-2'],
    );
    for (const { details, lastChecked, latencyMs } of targets) {
      assert.equal(details['templates'], '1/1');
      assert.equal(details['tokenID'], 'proxy-operator@pve!operator');
      assert.ok(lastChecked !== null && latencyMs !== null);
    }
    assert.deepEqual(await targetsUp(stack, home), ['pv1-1 1', 'pv1-2 1']);
    const [run] = await stack.workflows(`WorkflowId = "${providerWorkflowId(home)}"`);
    assert.equal(run?.status, 'RUNNING');
  });

  story(
    'two VMs that vanish at once are not made again before a person has confirmed it',
    async (stack) => {
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
        stack.kubectl('get', 'ph', home, '-o', 'jsonpath={.status.alarm.id}');
      await until(stack, 'the alarm should be raised', async () => (await alarm()) !== '');
      for (const name of names) {
        await untilProxy(stack, name, 'be unhealthy', ({ status }) => status.healthy === false);
      }
      assert.deepEqual(await simulatedVms(stack.simulator), []);
      editConfig(stack, withSettings({ confirmAbsence: await alarm() }));
      for (const name of names) await untilReady(stack, name);
      await until(stack, 'the alarm should be over', async () => (await alarm()) === '');
      for (const name of names) await stack.kubectl('delete', 'px', name);
    },
  );

  story('a node that is down shows alone, and its Proxies go on when it is back', async (stack) => {
    await stack.simulator.admin('POST', '/nodes/pv1-2', { state: 'dead' });
    await untilShown(stack, home, 'proxmox 1/2 Unreachable');
    const [up, down] = await targetsOf(stack, home);
    assert.equal(up?.ready, true);
    assert.match(down?.message ?? '', /595.*is node pv1-2 up/);
    assert.deepEqual(await targetsUp(stack, home), ['pv1-1 1', 'pv1-2 0']);
    const placement = { zone: 'pv1-2', machineType: 'small', image: 'debian-13' };
    await stack.apply(proxyManifest('waits-for-node', managedSpec({ placement })));
    await untilProxy(stack, 'waits-for-node', 'miss its node', ({ status }) =>
      status.message.includes('pv1-2'),
    );
    await stack.simulator.admin('POST', '/nodes/pv1-2', { state: 'up' });
    await untilShown(stack, home, 'proxmox 2/2 Reachable');
    assert.deepEqual(await targetsUp(stack, home), ['pv1-1 1', 'pv1-2 1']);
    const [, back] = await targetsOf(stack, home);
    assert.notEqual(back?.lastTransition, down?.lastTransition);
    await untilReady(stack, 'waits-for-node');
  });

  story('an edit of the config counts for the next check, which is at once', async (stack) => {
    editConfig(stack, edit({ isoStorage: 'nosuch' }));
    await untilShown(stack, home, 'proxmox 0/2 StorageNotFound');
    editConfig(stack, edit({ isoStorage: 'proxy-seeds', ...nodes('pv1-2') }));
    await untilShown(stack, home, 'proxmox 1/1 Reachable');
    assert.deepEqual(await targetsUp(stack, home), ['pv1-2 1']);
    editConfig(stack, edit(nodes('pv1-1', 'pv1-2')));
    await untilShown(stack, home, 'proxmox 2/2 Reachable');
  });

  story('a provider comes with the config, and nobody serves it when it left', async (stack) => {
    await stack.apply(proxyManifest('early', managedSpec({ provider: 'second' })));
    const early = await untilProxy(stack, 'early', 'name the configured ones', ({ status }) =>
      status.message.includes('configured are: proxmox-local'),
    );
    assert.equal(early.status.phase, 'Pending');
    editConfig(stack, withSecond(true));
    await untilShown(stack, 'second', 'proxmox 2/2 Reachable');
    await untilReady(stack, 'early');
    editConfig(stack, withSecond(false));
    await until(stack, 'the queues should have no poller', () =>
      stack.log('worker').includes('provider no longer served'),
    );
    // The next check waits a minute for somebody to take it.
    await untilShown(stack, 'second', 'proxmox 0/2 ProviderNotServed', 120_000);
    assert.equal((await targetsOf(stack, 'second'))[0]?.details['templates'], '1/1');
    editConfig(stack, withSecond(true));
    await untilShown(stack, 'second', 'proxmox 2/2 Reachable');
  });

  story(
    'a ProviderHealth that nobody looks after gets a workflow, to be removed by it',
    async (stack) => {
      const object = { apiVersion: 'egress-proxies.io/v1alpha1', kind: 'ProviderHealth' };
      await stack.apply(JSON.stringify({ ...object, metadata: { name: 'left-over' } }));
      await until(
        stack,
        'its workflow should run',
        async () => {
          const [run] = await stack.workflows(`WorkflowId = "${providerWorkflowId('left-over')}"`);
          return run?.status === 'RUNNING';
        },
        90_000,
      );
    },
  );
});

async function targetsOf(stack: SystemStack, provider: string): Promise<ProviderTarget[]> {
  const text = await stack.kubectl('get', 'ph', provider, '-o', 'json');
  const { status } = z.object({ status: providerHealthStatusSchema }).parse(JSON.parse(text));
  return status.targets;
}

function edit(settings: Record<string, unknown>): (text: string) => string {
  return edited(({ providers: [first] }) => {
    assert.ok(first);
    Object.assign(first.proxmox, settings);
  });
}

/** Each node has its own copy of the template. */
function nodes(...names: ('pv1-1' | 'pv1-2')[]): Record<string, unknown> {
  const copies = { 'pv1-1': 9001, 'pv1-2': 9002 };
  const vmids = Object.fromEntries(names.map((name) => [name, copies[name]]));
  return { nodes: names, templates: { 'debian-13': { vmids } } };
}

function withSecond(there: boolean): (text: string) => string {
  return edited(({ providers }) => {
    const [first] = providers;
    assert.ok(first);
    providers.splice(1);
    // VMIDs of its own: both reach the same cluster.
    const proxmox = { ...first.proxmox, vmidRange: { min: 300_000, max: 300_999 } };
    if (there) providers.push({ ...first, name: 'second', proxmox });
  });
}
