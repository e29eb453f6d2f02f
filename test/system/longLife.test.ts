/** One Proxy through everything that befalls it, chapter after chapter; after each, whoever is asked tells the same. */
import assert from 'node:assert/strict';
import { after } from 'node:test';
import type { Proxy } from '../../api/proxy.ts';
import { claimPort } from '../../deploy/dev/ports.ts';
import { Cable } from './support/cable.ts';
import { startClient } from './support/client.ts';
import { servedBy, simulatedRequests, type SimulatedVm } from './support/cluster.ts';
import { edited } from './support/config.ts';
import { findSecrets, pemLines, simulatorToken } from './support/canaries.ts';
import { startCollector } from './support/collector.ts';
import { expectGivenUp } from './support/givenUp.ts';
import { targetsUp, untilShown } from './support/health.ts';
import { hold } from './support/hold.ts';
import {
  eventsOf,
  managedSpec,
  onlyVmOf,
  proxyManifest,
  readProxy,
  seedsOf,
  userDataOf,
  watchVersions,
} from './support/proxies.ts';
import { collectionRound, forceDelete, healthEvents, orphansMetric, outcomeOf, providerHealth, untilCollected } from './support/rounds.ts'; // prettier-ignore
import type { SystemStack } from './support/stack.ts';
import { inOrder, onOneStack } from './support/suite.ts';
import { beingMade, moved, paused, ready, unhealthy, type Told } from './support/told.ts';
import { expectTraceOfALife } from './support/trace.ts';
import { tellNothing, tellsTheSame } from './support/windows.ts';

const name = 'long-life';
const home = 'proxmox-local';
const port = await claimPort();
/** Between the operator and Proxmox VE. */
const cable = new Cable(port.port);
const collector = await startCollector();
// Handed on to controller and worker.
process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = collector.url;
const gc = { mode: 'delete', graceMinutes: 0 };
const setting = {
  stack: {
    temporalDb: 'memory',
    workerFlags: ['--provider-check-interval=2s', '--provider-check-timeout=5s'],
    providersConfig: edited(({ providers }) => {
      for (const { proxmox } of providers) {
        Object.assign(proxmox, { gc, url: `https://127.0.0.1:${port.port}` });
      }
    }),
  },
} as const;
const [first, second, third] = [
  'canary-of-the-first',
  'canary-of-the-second',
  'the third',
] as const;
const phaseAndAddress = '{.status.phase} {.status.ip}';
/** Two bad probes in a row, so that a busy machine makes no proxy bad. */
const healthCheck = { intervalSeconds: 2, timeoutSeconds: 2, failureThreshold: 2 };
/** As it was when it was given up by force. */
let given: Proxy | undefined;

after(() => {
  collector.close();
  cable.unplug();
  port.release();
});

onOneStack('the long life of a Proxy', setting, (story) => {
  const chapter = inOrder(story);

  chapter('it is made, and becomes Ready', async (stack) => {
    await cable.plugIn(stack.ports.simulator);
    const goOn = await hold(stack, 'task', 'POST', '/clone$');
    await apply(stack, { cloudInit: cloudInitOf(first) });
    await tellsTheSame(stack, name, beingMade);
    await goOn();
    await settled(stack, ready);
  });

  chapter('somebody stops its VM, which is started again', async (stack) => {
    const { status } = await readProxy(stack, name);
    const { vmid, ip } = status;
    const goOn = await hold(stack, 'task', 'POST', '/status/start$');
    await stack.simulator.admin('POST', `/vms/${vmid}/power-off`);
    await tellsTheSame(stack, name, {
      phase: 'Running',
      conditions: { Ready: 'False VmStopped', Reconciling: 'True VmStopped' },
      message: new RegExp(`VM ${vmid} on pv1-1 is stopped; starting it`),
      blockedBy: 'VmStopped',
      vm: { ip, node: 'pv1-1', vmid: vmid ?? 0 },
    });
    await goOn();
    await settled(stack, { ...ready, vm: { ip, vmid: vmid ?? 0 } });
    await expectEvents(stack, 'VmStopped', 'VmStarted');
  });

  chapter('somebody destroys its VM, and another one is made', async (stack) => {
    const before = await onlyVmOf(stack, await readProxy(stack, name));
    const goOn = await hold(stack, 'task', 'POST', '/clone$');
    await stack.simulator.admin('DELETE', `/vms/${before.vmid}`);
    await tellsTheSame(stack, name, beingMade);
    await goOn();
    const vm = await settled(stack, ready);
    assert.notEqual(vm.config['net0'], before.config['net0'], 'it is the same VM');
    await expectEvents(stack, 'VmVanished');
  });

  chapter('somebody migrates its VM, and it stays Ready all the time', async (stack) => {
    const { vmid, address } = await onlyVmOf(stack, await readProxy(stack, name));
    const watch = watchVersions(stack, name, phaseAndAddress);
    await stack.simulator.admin('POST', `/vms/${vmid}/move`, { node: 'pv1-2' });
    await settled(stack, { ...moved, vm: { vmid, ip: address, node: 'pv1-2' } });
    assert.deepEqual(await watch.stop(), [`Ready ${address}`]);
    await expectEvents(stack, 'VmMoved');
  });

  chapter('its VM gets another address, and is found there', async (stack) => {
    const { vmid, address: before } = await onlyVmOf(stack, await readProxy(stack, name));
    // The answer that tells of it.
    const goOn = await hold(stack, 'request', 'GET', '/agent/network-get-interfaces$');
    await stack.simulator.admin('POST', `/vms/${vmid}/guest`, { newAddress: true });
    await tellsTheSame(stack, name, {
      ...unhealthy('ConnectionRefused', new RegExp(`${before}:3128 refused`)),
      vm: { vmid, ip: before },
    });
    await goOn();
    const vm = await settled(stack, { ...moved, vm: { vmid } });
    assert.notEqual(vm.address, before);
    await expectEvents(stack, 'AddressChanged');
  });

  chapter('its proxy breaks, and works again', async (stack) => {
    const { vmid } = await onlyVmOf(stack, await readProxy(stack, name));
    await stack.simulator.admin('POST', `/vms/${vmid}/guest`, { proxyBroken: true });
    await tellsTheSame(stack, name, { ...unhealthy('UnexpectedStatus', /502/), vm: { vmid } });
    await expectEvents(stack, 'Unhealthy');
    await stack.simulator.admin('POST', `/vms/${vmid}/guest`, { proxyBroken: false });
    await settled(stack, { ...moved, vm: { vmid } });
  });

  chapter(
    'somebody takes its tag and agent away: both come back without a restart',
    async (stack) => {
      const { vmid, node } = await onlyVmOf(stack, await readProxy(stack, name));
      await stack.simulator.admin('DELETE', '/requests');
      await stack.simulator.admin('POST', `/vms/${vmid}/config`, { tags: 'web', agent: '0' });
      const silent = { ...moved.conditions, AgentReachable: 'False AgentSilent' };
      const vm = await settled(stack, { ...moved, conditions: silent, vm: { vmid } });
      assert.equal(vm.config['tags'], 'proxy_operator;web');
      // Pending until the VM is stopped and started; a plain read shows what is pending.
      const config = await stack.simulator.get(`/nodes/${node}/qemu/${vmid}/config`);
      assert.match(JSON.stringify(config), /"agent":"1"/);
      assert.deepEqual(await writes(stack), [`PUT /nodes/${node}/qemu/${vmid}/config`]);
    },
  );

  chapter('its spec changes, and a client never notices', async (stack) => {
    const before = await readProxy(stack, name);
    const client = startClient(stack);
    const watch = watchVersions(stack, name, phaseAndAddress);
    const goOn = await hold(stack, 'task', 'POST', '/clone$');
    await apply(stack, { cloudInit: cloudInitOf(second) });
    await tellsTheSame(stack, name, {
      ...ready,
      conditions: { Ready: 'True ProbeSucceeded', Reconciling: 'True Provisioning' },
      vm: { vmid: before.status.vmid ?? 0 },
    });
    await goOn();
    const fresh = await settled(stack, { ...ready, vm: { node: 'pv1-1' } });
    const proxy = await readProxy(stack, name);
    const [old, ip] = [before.status.ip, fresh.address];
    const { requests, failures, listings } = await client.stop();
    assert.deepEqual(failures, [], `of ${requests} requests`);
    assert.deepEqual(listings, [`${old}:3128`, `${ip}:3128`]);
    assert.deepEqual(await watch.stop(), [`Ready ${old}`, `Ready ${ip}`]);
    const served = await servedBy(stack.simulator, stack.pages.pageUrl);
    const both = [before.status.vmid ?? 0, fresh.vmid];
    assert.deepEqual(both.filter((vmid) => !served.has(vmid)), [], 'it served no client'); // prettier-ignore
    assert.notEqual(fresh.vmid, before.status.vmid);
    assert.equal(proxy.status.observedGeneration, proxy.metadata.generation);
    assert.notEqual(proxy.status.specHash, before.status.specHash);
    assert.deepEqual(await userDataOf(stack, proxy), [cloudInitOf(second)]);
    const removed = (await eventsOf(stack, proxy)).find(({ reason }) => reason === 'VmRemoved');
    assert.match(removed?.message ?? '', new RegExp(`VM ${before.status.vmid} `));
  });

  chapter('it is paused, and nothing is changed until it is resumed', async (stack) => {
    const { vmid } = await onlyVmOf(stack, await readProxy(stack, name));
    await stack.simulator.admin('DELETE', '/requests');
    await apply(stack, { cloudInit: cloudInitOf(third), paused: true });
    const { status } = await tellsTheSame(stack, name, { ...paused, vm: { vmid } });
    assert.notEqual(status.desiredSpecHash, status.specHash);
    // The new one finds everything in Temporal.
    await stack.shutDown('worker');
    await stack.start('worker');
    await apply(stack, { cloudInit: cloudInitOf(second) });
    await settled(stack, { ...ready, vm: { vmid } });
    assert.deepEqual(await writes(stack), []);
  });

  chapter('Proxmox is down: it serves, and is given up by force', async (stack) => {
    await untilShown(stack, home, 'proxmox 2/2 Reachable');
    cable.unplug();
    await untilShown(stack, home, 'proxmox 0/2 Unreachable');
    assert.deepEqual(await targetsUp(stack, home), ['pv1-1 0', 'pv1-2 0']);
    await settled(stack, ready);
    await stack.kubectl('delete', 'px', name, '--wait=false');
    const proxy = await tellsTheSame(stack, name, {
      phase: 'Deleting',
      conditions: { Ready: 'False Deleting', Reconciling: 'True Unreachable' },
      message: /ECONNREFUSED|refused/,
      blockedBy: 'provider',
    });
    await forceDelete(stack, name);
    await tellNothing(stack, proxy);
    await expectGivenUp(stack, proxy);
    assert.match((await collectionRound(stack)).problem ?? '', /^Unreachable/);
    assert.match((await providerHealth(stack)).orphans?.message ?? '', /^Unreachable/);
    given = proxy;
  });

  chapter('Proxmox is back, and what was left of it is collected', async (stack) => {
    assert.ok(given);
    await cable.plugIn(stack.ports.simulator);
    const vm = await onlyVmOf(stack, given);
    const { vms } = await collectionRound(stack);
    assert.deepEqual(vms.map(({ vmid, owner }) => `${vmid} ${owner.name}`), [`${vm.vmid} ${name}`]); // prettier-ignore
    assert.equal((await onlyVmOf(stack, given)).running, true, 'seen once is not enough');
    assert.equal(await orphansMetric(stack, 'vm'), '1');
    await collectionRound(stack);
    await untilCollected(stack, given);
    await tellNothing(stack, given);
    assert.equal(await outcomeOf(stack, given), 'Collected');

    const { vms: left, seeds } = await collectionRound(stack);
    assert.deepEqual([left, seeds], [[], []]);
    const { orphans } = await providerHealth(stack);
    assert.deepEqual([orphans?.vms, orphans?.seeds, orphans?.alarm], [0, 0, null]);
    assert.match((await healthEvents(stack, 'OrphanFound')).join(), new RegExp(`VM ${vm.vmid} `));
    assert.equal((await healthEvents(stack, 'OrphanCollected')).length, 1);
  });

  chapter('all of it is one trace, from the watcher to the requests', async (stack) => {
    assert.ok(given);
    // The end of a program sends its last spans.
    await stack.shutDown('controller');
    await stack.shutDown('worker');
    expectTraceOfALife(collector.spans(), given.status.workflowID ?? '');
    const [key = ''] = pemLines(stack.kubernetes.identities.worker.key);
    const secrets = { token: simulatorToken, first, second, key };
    assert.deepEqual(findSecrets(secrets, [collector.received()]), []);
  });
});

function cloudInitOf(text: string): string {
  return `#cloud-config\n# ${text}\n`;
}

async function apply(stack: SystemStack, changes: object): Promise<void> {
  await stack.apply(proxyManifest(name, managedSpec({ healthCheck, drainSeconds: 3, ...changes })));
}

/** What is told is what stands there: one VM that runs, at that node and address, with its one seed. */
async function settled(stack: SystemStack, told: Told): Promise<SimulatedVm> {
  const proxy = await tellsTheSame(stack, name, told);
  const { vmid, node, ip, vmName } = proxy.status;
  const vm = await onlyVmOf(stack, proxy);
  assert.deepEqual([vm.vmid, vm.node, vm.address, vm.running], [vmid, node, ip, true]);
  const seeds = await seedsOf(stack, proxy);
  assert.deepEqual(seeds, [`pv1-1 ${vmName}-seed.iso`]);
  return vm;
}

/** What was sent to Proxmox to change something, each once, since its requests were forgotten. */
async function writes(stack: SystemStack): Promise<string[]> {
  const requests = await simulatedRequests(stack.simulator);
  assert.ok(requests.length > 0, 'it was asked nothing at all');
  const changing = requests.filter(({ method }) => method !== 'GET');
  return [...new Set(changing.map(({ method, path }) => `${method} ${path}`))];
}

async function expectEvents(stack: SystemStack, ...reasons: string[]): Promise<void> {
  const proxy = await readProxy(stack, name);
  const told = (await eventsOf(stack, proxy)).map(({ reason }) => reason);
  assert.deepEqual(reasons.filter((reason) => !told.includes(reason)), [], told.join()); // prettier-ignore
}
