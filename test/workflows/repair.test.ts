import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeWorld } from '../support/fakeWorld.ts';
import {
  conditionOf,
  eventReasons,
  ip,
  observed,
  onReady,
  onlyVm,
} from '../support/observedParts.ts';
import { gate } from '../support/storyParts.ts';
import { tellStory, useWorkflowServer } from '../support/workflowHarness.ts';

describe('a Proxy whose VM does not run, or is gone', () => {
  useWorkflowServer();

  it('starts a stopped VM without writing its config, and is not Ready meanwhile', async () => {
    await onReady(async (story, vm) => {
      const { world, until, health } = story;
      world.before('configureVm', () => {
        throw new Error('the config was written');
      });
      const start = gate();
      world.before('startVm', start.enter);
      vm.power = 'stopped';
      await observed(story);
      await until(() => start.reached() && world.status?.phase === 'Running', 'Running');
      assert.equal(world.status?.ip, ip);
      assert.equal(conditionOf(world, 'Ready'), 'False VmStopped');
      assert.equal(world.status?.power, 'stopped');
      start.open();
      await until(() => world.status?.power === 'running', 'it runs');
      assert.equal(vm.power, 'running');
      assert.equal(conditionOf(world, 'Ready'), 'False AwaitingProbe');
      await health(true);
      await until(() => world.status?.phase === 'Ready', 'Ready again');
      assert.equal(world.peak, 1);
      const told = eventReasons(world);
      assert.ok(told.includes('VmStopped') && told.includes('VmStarted'), told.join());
    });
  });

  it('starts nothing once the Proxy is paused, although nobody told of the pause yet', async () => {
    await onReady(async (story, vm) => {
      const { world, until, settled } = story;
      world.desired = world.desired && { ...world.desired, generation: 2, paused: true };
      vm.power = 'stopped';
      await observed(story);
      await until(() => world.status?.power === 'stopped', 'seen');
      await settled();
      assert.deepEqual([vm.power, vm.starts], ['stopped', 1]);
      assert.match(world.status?.message ?? '', /paused/);
    });
  });

  it('makes no VM again once the Proxy is paused, although nobody told of the pause yet', async () => {
    await onReady(async (story) => {
      const { world, until, settled } = story;
      world.desired = world.desired && { ...world.desired, generation: 2, paused: true };
      world.vms.clear();
      await observed(story);
      await until(() => eventReasons(world).includes('VmVanished'), 'seen');
      await settled();
      assert.equal(world.vms.size, 0);
    });
  });

  for (const power of ['paused', 'hibernated'] as const) {
    it(`lets a ${power} VM go on`, async () => {
      await onReady(async (story, vm) => {
        vm.power = power;
        await observed(story);
        await story.until(() => vm.power === 'running', 'it runs');
        assert.equal(story.world.peak, 1);
      });
    });
  }

  it('tries again when the start fails, and says why', async () => {
    await onReady(async (story, vm) => {
      const { world, until, skip } = story;
      const facts = { reason: 'TaskFailed', scope: 'provider' } as const;
      world.fail('startVm', { type: 'Transient', message: 'no memory', facts });
      vm.power = 'stopped';
      await observed(story);
      await until(() => world.status?.message.includes('no memory') === true, 'the reason');
      assert.equal(world.status?.phase, 'Running');
      await skip(3_000);
      await until(() => vm.power === 'running', 'it runs');
    });
  });

  const noQuorum = {
    type: 'Transient',
    message: 'cluster not ready - no quorum?',
    facts: { reason: 'TaskFailed', scope: 'provider' },
  } as const;
  for (const [what, step, differs] of [
    ['a VM cannot be started', 'startVm', { power: 'stopped' }],
    ['the tag of one that runs cannot be set', 'configureVm', { untagged: true }],
  ] as const) {
    it(`tries ever more rarely while ${what}, and tells it once`, async () => {
      await onReady(async (story, vm) => {
        const { world, skip, until } = story;
        let tries = 0;
        world.before(step, () => {
          tries += 1;
        });
        world.fail(step, ...Array.from({ length: 60 }, () => noQuorum));
        Object.assign(vm, differs);
        await observed(story);
        await until(() => tries === 1, 'the first try');
        await skip(60_000);
        // 0, 1, 3, 7, 15 and 31 s after the first.
        assert.ok(tries >= 4 && tries <= 6, `${tries} tries within a minute`);
        assert.match(world.status?.message ?? '', /no quorum/);
        const told = eventReasons(world).filter((reason) => reason === 'TaskFailed');
        assert.equal(told.length, 1);
      });
    });
  }

  it('makes a VM again that is gone, and keeps the seed of its name', async () => {
    await onReady(async (story, vm) => {
      const { world, until, health } = story;
      world.vms.clear();
      world.takenVmids.add(vm.vmid);
      await observed(story);
      await until(() => world.status?.ip === '192.0.2.11', 'a new address');
      assert.equal(world.status?.phase, 'Running');
      assert.ok(world.phases().slice(-3).includes('Provisioning'), world.phases().join());
      await health(true, '192.0.2.11');
      await until(() => world.status?.phase === 'Ready', 'Ready');
      assert.equal(onlyVm(world).vmid, vm.vmid + 1);
      assert.equal(world.seeds.size, 1);
      assert.ok(eventReasons(world).includes('VmVanished'));
    });
  });

  it('looks but changes nothing while paused, and mends when the pause is over', async () => {
    await onReady(async (story, vm) => {
      const { world, until, changed } = story;
      await changed({ paused: true });
      await until(() => world.status?.message.includes('paused') === true, 'paused');
      Object.assign(vm, { power: 'stopped', node: 'pv1-2' });
      await observed(story);
      await until(() => world.status?.power === 'stopped', 'told');
      assert.equal(world.status?.node, 'pv1-2');
      await story.settled();
      assert.deepEqual([vm.power, vm.starts], ['stopped', 1]);
      await changed({ paused: false });
      await until(() => vm.power === 'running', 'started');
    });
  });

  it('does not start a VM whose Proxy was paused while its seed was restored', async () => {
    await onReady(async (story, vm) => {
      const { world, until, changed } = story;
      world.seeds.clear();
      vm.power = 'stopped';
      const upload = gate();
      world.before('uploadSeed', upload.enter);
      await observed(story);
      await until(upload.reached, 'the upload');
      await changed({ paused: true });
      await until(
        () => world.status?.conditions.some(({ reason }) => reason === 'Paused') === true,
        'paused',
      );
      upload.open();
      await until(() => world.seeds.size === 1, 'the seed');
      await story.settled();
      assert.deepEqual([vm.power, vm.starts], ['stopped', 1]);
      await changed({ paused: false });
      await until(() => vm.power === 'running', 'started');
    });
  });

  const stuck = {
    kind: 'stuck',
    vmid: 100_000,
    node: 'pv1-1',
    lock: 'suspending',
    remedy: 'on pv1-1: qm unlock 100000',
  } as const;

  it('goes on with another VMID when a lock for good holds a VM that does not serve', async () => {
    await onReady(async (story) => {
      const { world, until, health } = story;
      await health(false);
      await until(() => world.status?.phase === 'Running', 'unhealthy');
      world.finds.push(stuck);
      world.vms.clear();
      world.takenVmids.add(100_000);
      await observed(story);
      await until(() => world.status?.ip === '192.0.2.11', 'another VM');
      assert.equal(world.status?.leftovers[0]?.vmid, 100_000);
      assert.ok(eventReasons(world).includes('VmLeftover'));
    });
  });

  it('makes a VM again that is gone, whatever holds the VMID that was given up before it', async () => {
    await onReady(async (story, vm) => {
      const { world, until, health } = story;
      await health(false);
      await until(() => world.status?.phase === 'Running', 'unhealthy');
      vm.deadLock = 'suspending';
      await observed(story);
      await until(() => world.status?.ip === '192.0.2.11', 'another VM');
      await health(true, '192.0.2.11');
      await until(() => world.status?.phase === 'Ready', 'Ready');
      world.vms.delete(100_001);
      world.takenVmids.add(100_001);
      await observed(story);
      await until(() => world.status?.ip === '192.0.2.12', 'made again');
      assert.deepEqual(
        world.status?.leftovers.map(({ vmid }) => vmid),
        [100_000],
      );
    });
  });

  it('only reports such a lock while the VM serves all the same', async () => {
    await onReady(async (story) => {
      const { world, until, skip } = story;
      world.finds.push(stuck);
      await observed(story);
      await until(() => world.status?.message.includes('qm unlock') === true, 'reported');
      assert.deepEqual([world.status?.phase, world.status?.leftovers.length], ['Ready', 0]);
      await skip(9 * 60_000);
      // Second by second where a step comes.
      await skip(35_000);
      await skip(35_000);
      await until(() => world.status?.message === '', 'looked at again, and over');
    });
  });

  it('gives seed and config again to a stopped VM that was never Ready', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await story.until(() => world.status?.ip === ip, 'an address');
      const vm = onlyVm(world);
      Object.assign(vm, { power: 'stopped', configured: false });
      await observed(story);
      await story.until(() => vm.starts === 2, 'started again');
      assert.equal(vm.configured, true);
      await story.until(() => world.status?.ip === ip, 'the address again');
    });
  });

  it('does not make an old VM again that vanishes while it is being replaced', async () => {
    await onReady(async (story, vm) => {
      const { world, until, changed, health } = story;
      await changed({ specHash: 'bbbb' });
      await until(() => world.status?.replacement?.ip === '192.0.2.11', 'a replacement');
      world.vms.delete(vm.vmid);
      await observed(story);
      await until(() => world.status?.vmid === vm.vmid + 1, 'the new one is shown');
      await health(true, '192.0.2.11');
      await until(() => world.status?.phase === 'Ready', 'Ready');
      await until(() => world.seeds.size === 1, 'the seed of the old one goes');
      assert.equal(onlyVm(world).specHash, 'bbbb');
    });
  });

  it('starts the old VM although a long clone of its replacement is under way', async () => {
    await onReady(async (story, vm) => {
      const { world, until, changed } = story;
      const agent = gate();
      world.before('awaitRunning', agent.enterOnce);
      await changed({ specHash: 'bbbb' });
      await until(agent.reached, 'the line waits');
      vm.power = 'stopped';
      await observed(story);
      await until(() => vm.power === 'running', 'started');
      await until(() => world.status?.replacement?.ip === '192.0.2.11', 'the line went on');
    });
  });
});
