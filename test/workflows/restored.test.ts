/** Kubernetes restored from a backup: the object is there as before its deletion, with the same UID. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeWorld, type PlannedFailure } from '../support/fakeWorld.ts';
import { eventReasons, ip, onReady, onlyVm } from '../support/observedParts.ts';
import { gate, ready } from '../support/storyParts.ts';
import { tellStory, useWorkflowServer } from '../support/workflowHarness.ts';

/** What the steps answer that read the object again before they write. */
const stillWanted: PlannedFailure = {
  type: 'Transient',
  message: 'kept: the Proxy is not being deleted',
  facts: { reason: 'StillWanted', scope: 'proxy', goBack: true },
};

describe('a Proxy that was restored to before its deletion', () => {
  useWorkflowServer();

  it('serves again when its VM was still draining', async () => {
    await onReady(async (story, vm) => {
      const { world, until, health, changed, deleted } = story;
      await deleted();
      await until(() => world.status?.phase === 'Deleting', 'the deletion');
      world.deleting = false;
      await changed({});
      await until(() => world.status?.phase === 'Running' && world.status.ip === ip, 'Running');
      await health(true);
      await until(() => world.status?.phase === 'Ready', 'Ready');
      await story.skip(40_000);
      assert.deepEqual([onlyVm(world), vm.power, vm.starts], [vm, 'running', 1]);
      assert.equal(world.finalizer, true);
      assert.ok(eventReasons(world).includes('DeletionWithdrawn'));
    });
  });

  it('finds that out by itself when a step refuses to remove its VM', async () => {
    await onReady(async (story, vm) => {
      const { world, until, deleted, skip } = story;
      world.fail('stopVm', stillWanted);
      world.before('stopVm', () => {
        world.deleting = false;
      });
      await deleted();
      await skip(35_000);
      await until(() => world.status?.phase === 'Running' && world.status.ip === ip, 'Running');
      assert.deepEqual([onlyVm(world), vm.power], [vm, 'running']);
    });
  });

  it('starts the VM that was stopped already', async () => {
    await onReady(async (story, vm) => {
      const { world, until, changed, deleted } = story;
      const destroy = gate();
      world.before('destroyVm', destroy.enter);
      world.fail('destroyVm', stillWanted);
      await changed({ drainSeconds: 0 });
      await deleted();
      await until(() => destroy.reached() && vm.power === 'stopped', 'stopped');
      world.deleting = false;
      await changed({});
      await until(() => world.status?.phase === 'Running', 'taken in');
      destroy.open();
      await until(() => vm.power === 'running' && world.status?.phase === 'Running', 'it runs');
      assert.deepEqual([onlyVm(world), vm.starts], [vm, 2]);
    });
  });

  it('has its VM made again when everything but the finalizer was gone', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await ready(story);
      world.fail('releaseProxy', stillWanted);
      world.before('releaseProxy', () => {
        world.deleting = false;
      });
      await story.deleted();
      await story.skip(40_000);
      await story.until(() => world.status?.phase === 'Running', 'a VM again');
      assert.equal(onlyVm(world).starts, 1);
      assert.equal(world.finalizer, true);
    });
  });
});
