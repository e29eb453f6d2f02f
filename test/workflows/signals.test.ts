import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { signalNames } from '../../workflows/contract/messages.ts';
import { FakeWorld } from '../support/fakeWorld.ts';
import { ready } from '../support/storyParts.ts';
import { tellStory, useWorkflowServer } from '../support/workflowHarness.ts';

describe('signals that a person sends', () => {
  useWorkflowServer();

  it('stop no run although they lack their input', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await ready(story);
      for (const name of Object.values(signalNames)) await story.handle.signal(name);
      await story.changed({ drainSeconds: 0 });
      await story.deleted();
      assert.equal((await story.handle.result()).outcome, 'Deleted');
    });
    assert.equal(world.vms.size, 0);
  });
});
