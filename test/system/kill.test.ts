/** kill -9 in the middle of things: one VM, Ready, one clone that ended well, nothing twice, nothing left. */
import assert from 'node:assert/strict';
import {
  pushFault,
  simulatedIsos,
  simulatedRequests,
  simulatedTasks,
  simulatedVms,
} from './support/cluster.ts';
import { withSettings } from './support/config.ts';
import {
  expectNothingLeft,
  managedSpec,
  onlyVmOf,
  proxyManifest,
  seedsOf,
  until,
  untilProxy,
  untilReady,
  vmsOf,
} from './support/proxies.ts';
import type { SystemStack } from './support/stack.ts';
import { onOneStack } from './support/suite.ts';

const setting = {
  stack: {
    temporalDb: 'file',
    // A request that died with its worker is missed after its bound and 15 s.
    providersConfig: withSettings({ maxClones: 8, maxDestroys: 8, requestTimeoutSeconds: 15 }),
  },
  atEnd: async ({ simulator }: SystemStack): Promise<void> => {
    assert.deepEqual(await simulatedVms(simulator), []);
    assert.deepEqual(await simulatedIsos(simulator), []);
  },
} as const;
/** What is to be caught in the middle, in seconds of the cluster, of which a tenth passes. */
const slow = (delaySeconds: number): object => ({ kind: 'task', delaySeconds });

onOneStack('kill -9 in the middle of things', setting, (story) => {
  story('the worker, in four places at once', async (stack) => {
    const { simulator } = stack;
    await pushFault(simulator, { method: 'POST', path: '/clone$', action: slow(100) });
    await pushFault(simulator, { method: 'POST', path: '/upload$', action: slow(100) });
    await pushFault(simulator, { method: 'POST', path: '/status/start$', action: slow(100) });
    // The last clone: its request is still under way when the worker dies, and is carried out all the same.
    const slowRequest = { kind: 'slow', seconds: 100 };
    await pushFault(simulator, { method: 'POST', path: '/clone$', nth: 3, action: slowRequest });
    const names = ['killed-1', 'killed-2', 'killed-3', 'killed-4'];
    for (const name of names) await stack.apply(proxyManifest(name, managedSpec()));
    const expectCaught = async (): Promise<void> => {
      for (const type of ['qmclone', 'imgcopy', 'qmstart']) {
        assert.equal(await running(stack, type), 1, `tasks ${type} under way`);
      }
      assert.equal(await underWay(stack, /\/clone$/), 1, 'clone requests under way');
    };
    await until(stack, 'each step should be under way once', expectCaught);
    await stack.crash('worker');
    await expectCaught();
    await stack.start('worker');
    for (const name of names) await expectOneOfEverything(stack, name);
    for (const name of names) await remove(stack, name);
  });

  for (const victim of ['controller', 'temporal'] as const) {
    story(`the ${victim} in mid-clone, with an apply and a deletion meanwhile`, async (stack) => {
      const [doomed, name, late] = [`doomed-${victim}`, `cloned-${victim}`, `late-${victim}`];
      await beginClone(stack, name);
      await stack.apply(proxyManifest(doomed, managedSpec()));
      const proxy = await untilProxy(stack, doomed, 'have a VM', async (object) => {
        return (await vmsOf(stack, object)).length === 1 && (await running(stack, 'qmclone')) === 1;
      });
      await stack.crash(victim);
      await stack.kubectl('delete', 'px', doomed, '--wait=false');
      await stack.apply(proxyManifest(late, managedSpec()));
      assert.equal(await running(stack, 'qmclone'), 1);
      await stack.start(victim);
      await expectNothingLeft(stack, proxy);
      for (const survivor of [name, late]) await expectOneOfEverything(stack, survivor);
      for (const survivor of [name, late]) await remove(stack, survivor);
    });
  }

  story('worker, controller and temporal together in mid-clone', async (stack) => {
    await beginClone(stack, 'power-cut');
    for (const victim of ['worker', 'controller', 'temporal'] as const) await stack.crash(victim);
    assert.equal(await running(stack, 'qmclone'), 1);
    await stack.start('temporal');
    await Promise.all([stack.start('controller'), stack.start('worker')]);
    await expectOneOfEverything(stack, 'power-cut');
    await remove(stack, 'power-cut');
  });

  story('SIGTERM lets the worker finish the request it has begun', async (stack) => {
    const name = 'drained';
    const slowRequest = { kind: 'slow', seconds: 40 };
    await pushFault(stack.simulator, { method: 'POST', path: '/upload$', action: slowRequest });
    const earlier = (await simulatedTasks(stack.simulator, 'imgcopy')).length;
    await stack.apply(proxyManifest(name, managedSpec()));
    await until(stack, 'the upload should be under way', async () => {
      assert.equal(await underWay(stack, /\/upload$/), 1);
    });
    const startedMs = Date.now();
    await stack.shutDown('worker');
    assert.match(stack.log('worker'), /"msg":"stopped"\}\s*$/, 'it ended by itself');
    assert.equal(await underWay(stack, /\/upload$/), 0);
    assert.ok(Date.now() - startedMs < 15_000, 'waits that change nothing hold no drain up');
    await stack.start('worker');
    await expectOneOfEverything(stack, name);
    assert.equal((await simulatedTasks(stack.simulator, 'imgcopy')).length, earlier + 1);
    await remove(stack, name);
  });
});

/** Applies a Proxy whose clone takes eight seconds more, and waits until it runs. */
async function beginClone(stack: SystemStack, name: string): Promise<void> {
  await pushFault(stack.simulator, { method: 'POST', path: '/clone$', action: slow(80) });
  await stack.apply(proxyManifest(name, managedSpec()));
  await until(stack, `the clone of ${name} should run`, async () => {
    assert.equal(await running(stack, 'qmclone'), 1);
  });
}

async function running(stack: SystemStack, type: string): Promise<number> {
  const tasks = await simulatedTasks(stack.simulator, type);
  return tasks.filter((task) => task.running).length;
}

async function underWay(stack: SystemStack, path: RegExp): Promise<number> {
  const requests = await simulatedRequests(stack.simulator);
  return requests.filter((request) => !request.answered && path.test(request.path)).length;
}

/** Ready on one VM, from one clone that ended well, with one seed. */
async function expectOneOfEverything(stack: SystemStack, name: string): Promise<void> {
  const proxy = await untilReady(stack, name);
  const { vmid } = await onlyVmOf(stack, proxy);
  assert.equal(vmid, proxy.status.vmid);
  assert.deepEqual(proxy.status.leftovers, []);
  const clones = (await simulatedTasks(stack.simulator, 'qmclone')).filter(({ log }) => {
    return log.some((line) => line.endsWith(` with ID ${vmid}`));
  });
  assert.deepEqual(
    clones.map(({ exitstatus }) => exitstatus),
    ['OK'],
    `clones to VM ${vmid}`,
  );
  assert.deepEqual(await seedsOf(stack, proxy), [`pv1-1 ${proxy.status.vmName}-seed.iso`]);
}

async function remove(stack: SystemStack, name: string): Promise<void> {
  const proxy = await untilReady(stack, name);
  await stack.kubectl('delete', 'px', name, '--timeout=90s');
  await expectNothingLeft(stack, proxy);
}
