import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeWorld } from '../support/fakeWorld.ts';
import { ready } from '../support/storyParts.ts';
import { tellStory, useWorkflowServer } from '../support/workflowHarness.ts';

describe('a worker that keeps no workflow in memory', () => {
  useWorkflowServer();

  it('lives a whole life, every decision of it from a replay of the history', async () => {
    const world = new FakeWorld();
    const refused = { reason: 'Unreachable', scope: 'provider' } as const;
    world.fail('cloneTemplate', {
      type: 'Transient',
      message: 'clone to VM 100000: connection refused',
      facts: refused,
    });
    const settings = { maxCachedWorkflows: 0, searchAttributes: true };
    await tellStory(
      world,
      async (story) => {
        await story.skip(5_000);
        await ready(story);
        await story.changed({ specHash: 'bbbb' });
        await story.until(() => world.status?.replacement?.ip === '192.0.2.11', 'a replacement');
        await story.health(true, '192.0.2.11');
        await story.until(() => world.status?.ip === '192.0.2.11', 'the switch');
        await story.skip(31_000);
        await story.until(() => world.vms.size === 1, 'the old VM gone');
        assert.equal((await story.state()).serving?.vmid, 100001);
        await story.changed({ drainSeconds: 0 });
        await story.deleted();
        assert.equal((await story.handle.result()).outcome, 'Deleted');
        const events = (await story.handle.fetchHistory()).events ?? [];
        // A decision that a replay does not make again fails its task, and the next attempt might hide it.
        assert.deepEqual(
          events.filter((event) => event.workflowTaskFailedEventAttributes),
          [],
        );
        const queues = events.map((event) => event.workflowTaskScheduledEventAttributes?.taskQueue);
        assert.ok(
          queues.every((queue) => !queue?.normalName),
          'a task went to a sticky queue',
        );
      },
      settings,
    );
    assert.equal(world.vms.size, 0);
    assert.equal(world.seeds.size, 0);
    assert.equal(world.finalizer, false);
  });
});
