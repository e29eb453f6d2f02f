/** What is done to a Proxy during its life: another spec, a deletion at a bad moment, Retain, pause. */
import assert from 'node:assert/strict';
import type { Proxy } from '../../api/proxy.ts';
import { eventually } from '../support/eventually.ts';
import { simulatedTasks } from './support/cluster.ts';
import { withSettings } from './support/config.ts';
import { hold } from './support/hold.ts';
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
  watchVersions,
} from './support/proxies.ts';
import type { SystemStack } from './support/stack.ts';
import { onOneStack } from './support/suite.ts';
import { deleteAllButProxies, makeNamespace } from './support/teardown.ts';

const setting = {
  stack: {
    temporalDb: 'memory',
    providersConfig: withSettings({ maxClones: 8, maxDestroys: 8 }),
  },
  concurrency: 6,
} as const;
const secret = {
  name: 'cloud-init',
  data: {
    'user-data': '#cloud-config\n# simulator: auth=probe:s3cret\n',
    username: 'probe',
    password: 's3cret',
  },
};
const fromSecret = {
  cloudInit: undefined,
  cloudInitFrom: { secretKeyRef: { name: secret.name, key: 'user-data' } },
  auth: { secretRef: { name: secret.name } },
};
const shownLast = '{.status.phase} {.status.conditions[*].reason} {.status.message}';
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
    const name = 'cloned-slowly';
    const goOn = await hold(stack, 'task', 'POST', '/clone$', name);
    await stack.apply(proxyManifest(name, managedSpec()));
    const proxy = await untilProxy(stack, name, 'be cloned', ({ status }) => {
      return status.message.startsWith('cloning ');
    });
    await stack.kubectl('delete', 'px', name, '--wait=false');
    await untilProxy(stack, name, 'be deleted', ({ status }) => status.phase === 'Deleting');
    await goOn();
    await expectNothingLeft(stack, proxy);
    const ends = (await clonesTo(stack, proxy.status.vmid)).map(({ exitstatus }) => exitstatus);
    assert.deepEqual(ends, ['OK'], 'the clone was neither aborted nor repeated');
  });

  story(
    'a namespace whose Secret and roles go first: what serves goes all the same',
    async (stack) => {
      const which = 'serving/p1';
      await makeNamespace(stack, 'serving', secret);
      await stack.apply(proxyManifest('p1', managedSpec(fromSecret), { namespace: 'serving' }));
      const proxy = await untilReady(stack, which);
      await deleteAllButProxies(stack, 'serving');
      // Whatever changes in its spec makes the operator look for the Secret again.
      const patch = ['--type=merge', '--patch={"spec":{"drainSeconds":1}}'];
      await stack.kubectl('patch', 'px', 'p1', '--namespace=serving', ...patch);
      await untilProxy(stack, which, 'serve on without its Secret', (object) => {
        assert.equal(conditionOf(object, 'CloudInitAvailable').status, 'False');
        return object.status.phase === 'Ready';
      });
      await removeWithNamespace(stack, proxy);
    },
  );

  story(
    'a namespace whose Secret and roles go first: so does what is being made',
    async (stack) => {
      const [early, late] = ['making/early', 'making/late'];
      await makeNamespace(stack, 'making', secret);
      // No other story clones there.
      const placement = { zone: 'pv1-2', machineType: 'small', image: 'debian-13' };
      const clone = ['task', 'POST', '/nodes/pv1-2/qemu/9002/clone$'] as const;
      const goOn = [await hold(stack, ...clone), await hold(stack, ...clone)];
      for (const name of ['early', 'late']) {
        const spec = managedSpec({ ...fromSecret, placement });
        await stack.apply(proxyManifest(name, spec, { namespace: 'making' }));
      }
      const beingCloned = (which: string): Promise<Proxy> =>
        untilProxy(stack, which, 'be cloned', ({ status }) =>
          status.message.startsWith('cloning '),
        );
      const [cloning, cloned] = [await beingCloned(early), await beingCloned(late)];
      await deleteAllButProxies(stack, 'making');
      await stack.kubectl('delete', 'px', 'early', '--namespace=making', '--wait=false');
      await untilProxy(stack, early, 'be deleted', ({ status }) => status.phase === 'Deleting');
      for (const release of goOn) await release();
      await removeWithNamespace(stack, cloning);
      await untilProxy(stack, late, 'have a VM and no Secret to go on with', (object) => {
        return conditionOf(object, 'Ready').reason === 'CloudInitUnavailable';
      });
      assert.deepEqual(await seedsOf(stack, cloned), []);
      await onlyVmOf(stack, cloned);
      await removeWithNamespace(stack, cloned);
    },
  );

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

/** Deletes a Proxy in a namespace that is being deleted: it goes, and neither a Secret nor a right is missed on the way. */
async function removeWithNamespace(stack: SystemStack, proxy: Proxy): Promise<void> {
  const { namespace, name } = proxy.metadata;
  const which = `${namespace}/${name}`;
  const watch = watchVersions(stack, which, shownLast);
  await stack.kubectl(
    'delete',
    'px',
    name,
    `--namespace=${namespace}`,
    '--wait=false',
    '--ignore-not-found',
  );
  await expectNothingLeft(stack, proxy);
  const told = (await watch.stop()).filter((line) => line.startsWith('Deleting'));
  assert.doesNotMatch(told.join('\n'), /CloudInitUnavailable/);
  const lines = stack
    .log('worker')
    .split('\n')
    .filter((line) => line.includes(which));
  assert.ok(lines.length > 0);
  assert.doesNotMatch(lines.join('\n'), /RBAC/);
}

async function clonesTo(
  stack: SystemStack,
  vmid: number | null,
): Promise<Awaited<ReturnType<typeof simulatedTasks>>> {
  const clones = await simulatedTasks(stack.simulator, 'qmclone');
  return clones.filter(({ log }) => log.some((line) => line.endsWith(`with ID ${vmid}`)));
}
