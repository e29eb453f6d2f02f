/** Runs whose object is gone, and what wakes them: the collection of orphans may be the only one to tell. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeWorld } from '../support/fakeWorld.ts';
import { letGoWhilePaused, ready } from '../support/storyParts.ts';
import { tellStory, useWorkflowServer } from '../support/workflowHarness.ts';

describe('a run whose object is gone', () => {
  useWorkflowServer();

  it('lets another VM of its UID go although a look at the one that served is still due', async () => {
    const world = new FakeWorld();
    const name = 'proxy-p1-abcdef-11111111-eeee';
    await tellStory(world, async (story) => {
      await ready(story);
      world.desired = null;
      await story.handle.signal('desiredChanged', { generation: 1, deleting: false });
      await story.handle.signal('observed', {});
      await story.settled();
      world.vms.set(100_003, { ...world.at(100_000), vmid: 100_003, name, specHash: 'eeee' });
      await story.handle.signal('orphan', { provider: 'pve', vmid: 100_003 });
      await story.until(() => !world.vms.has(100_003), 'the orphan gone');
      await story.settled();
      assert.deepEqual([...world.vms.keys()], [100_000]);
      await story.handle.signal('orphan', { provider: 'pve', vmid: 100_000 });
      assert.equal((await story.handle.result()).outcome, 'Collected');
    });
    assert.equal(world.vms.size, 0);
  });

  it('ends a paused deletion when the collection tells of its VM, although nobody told that the object is gone', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await letGoWhilePaused(story);
      await story.handle.signal('orphan', { provider: 'pve', vmid: 100_000 });
      assert.equal((await story.handle.result()).outcome, 'Gone');
    });
    assert.equal(world.vms.get(100_000)?.power, 'running');
  });
});
