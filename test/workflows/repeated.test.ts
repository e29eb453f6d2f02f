/** What somebody or something does to a VM again and again is not undone ever faster. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeWorld } from '../support/fakeWorld.ts';
import { ip, observed, onlyVm, onReady } from '../support/observedParts.ts';
import { tellStory, useWorkflowServer } from '../support/workflowHarness.ts';

describe('a Proxy whose VM is disturbed again and again', () => {
  useWorkflowServer();

  it('waits longer each time a VM vanishes again', async () => {
    await onReady(async (story) => {
      const { world, until, health, skip } = story;
      world.vms.clear();
      await observed(story);
      await until(() => world.vms.size === 1 && world.status?.ip === ip, 'made again');
      await health(true);
      await until(() => world.status?.phase === 'Ready', 'Ready again');
      world.vms.clear();
      await observed(story);
      await until(() => world.status?.message.includes('2. time') === true, 'it says so');
      assert.equal(world.status?.phase, 'Provisioning');
      assert.equal(world.vms.size, 0);
      await skip(20_000);
      assert.equal(world.vms.size, 0);
      await skip(41_000);
      await until(() => world.status?.ip === ip, 'made again');
    });
  });

  it('waits longer each time a VM stops again, and starts it at once when asked to', async () => {
    await onReady(async (story, vm) => {
      const { world, until, health, skip, handle } = story;
      const stopAgain = async (): Promise<void> => {
        vm.power = 'stopped';
        await observed(story);
      };
      const readyAgain = async (): Promise<void> => {
        await until(() => vm.power === 'running', 'it runs');
        await health(true);
        await until(() => world.status?.phase === 'Ready', 'Ready again');
      };
      await stopAgain();
      await readyAgain();
      await stopAgain();
      await until(() => world.status?.message.includes('2. time') === true, 'it says so');
      await skip(50_000);
      // Told of again and again, it is looked at; it is not started for that.
      await observed(story);
      await story.settled();
      assert.deepEqual([vm.power, world.status?.phase], ['stopped', 'Running']);
      await skip(11_000);
      await readyAgain();
      await stopAgain();
      await until(() => world.status?.message.includes('3. time') === true, 'it says so');
      await skip(61_000);
      assert.equal(vm.power, 'stopped');
      await handle.signal('retry');
      await readyAgain();
      await stopAgain();
      await readyAgain();
    });
  });

  it('waits longer each time a VM stops that was never Ready', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      const { until, skip } = story;
      const stopAgain = async (): Promise<void> => {
        await until(() => world.status?.ip === ip, 'an address');
        onlyVm(world).power = 'stopped';
        await observed(story);
      };
      await stopAgain();
      await until(() => onlyVm(world).starts === 2, 'started again');
      await stopAgain();
      await until(() => world.status?.message.includes('2. time') === true, 'it says so');
      await skip(50_000);
      assert.equal(onlyVm(world).starts, 2);
      await skip(11_000);
      await until(() => onlyVm(world).starts === 3, 'started again');
    });
  });
});
