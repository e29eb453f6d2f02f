/** What a run does while Kubernetes takes no status. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApplicationFailure } from '@temporalio/common';
import { FakeWorld } from '../support/fakeWorld.ts';
import { ready } from '../support/storyParts.ts';
import { tellStory, useWorkflowServer } from '../support/workflowHarness.ts';

/** From now on, until the function it gives is called. */
function refuseStatus(world: FakeWorld): () => void {
  let refused = true;
  const details = [{ reason: 'KubernetesUnavailable', scope: 'proxy' }];
  world.before('publishStatus', () => {
    if (!refused) return;
    throw ApplicationFailure.create({ type: 'Transient', nonRetryable: true, message: 'no answer', details }); // prettier-ignore
  });
  return () => {
    refused = false;
  };
}

describe('a run whose status Kubernetes does not take', () => {
  useWorkflowServer();

  it('ends when its deletion is forced, and does not try for ever to write the status of what is gone', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await ready(story);
      refuseStatus(world);
      await story.deleted();
      await story.handle.signal('forceDelete');
      assert.equal((await story.handle.result()).outcome, 'ForceDeleted');
    });
    assert.equal(world.finalizer, false);
  });

  it('tries again at once when somebody asks for it', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await ready(story);
      const takeStatus = refuseStatus(world);
      await story.changed({ paused: true });
      // By then a repetition waits for some four minutes.
      await story.skip(300_000);
      takeStatus();
      await story.handle.signal('retry');
      await story.until(() => world.status?.message.startsWith('paused') === true, 'the status');
    });
  });
});
