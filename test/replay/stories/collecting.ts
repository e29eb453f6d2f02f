/** What a Proxy leaves behind, collected: the rounds of the collection, and the runs it tells. */
import assert from 'node:assert/strict';
import { ScheduleOverlapPolicy } from '@temporalio/client';
import { CollectWorld, lostOwner, lostSeed, lostVm } from '../../support/collectWorld.ts';
import { eventually } from '../../support/eventually.ts';
import { ready } from '../../support/storyParts.ts';
import { onServer } from '../../support/workflowHarness.ts';
import { ensureCollection } from '../../../worker/collections.ts';
import type { RecordedStory, Recording } from '../recordedStory.ts';
import { showHistory } from '../showHistory.ts';

export const collectingStories: RecordedStory[] = [
  {
    name: 'orphanCollected',
    tell: async (story) => {
      await ready(story);
      story.world.desired = null;
      await story.handle.signal('desiredChanged', { generation: 1, deleting: false });
      await story.settled();
      await story.handle.signal('orphan', { provider: 'pve', vmid: 100_000 });
      await story.handle.result();
    },
  },
  {
    name: 'leftoverCleared',
    world: (world) => {
      const remedy = 'on pv1-1: qm unlock 100009 && qm destroy 100009 --purge';
      world.finds.push({ kind: 'stuck', vmid: 100_009, node: 'pv1-1', lock: 'clone', remedy });
    },
    tell: async (story) => {
      const { world, handle, until } = story;
      await ready(story);
      const serving = world.vms.get(100_000);
      assert.ok(serving);
      world.vms.set(100_009, { ...serving, vmid: 100_009, power: 'stopped' });
      await handle.signal('orphan', { provider: 'pve', vmid: 100_009 });
      await until(() => world.status?.leftovers.length === 0 && world.vms.size === 1, 'it gone');
    },
  },
];

/** Records the second round of a Schedule: the first one only remembers. */
function recordRound(change: (world: CollectWorld) => void): Recording {
  return async (keep, name) => {
    const world = new CollectWorld();
    world.orphans = [lostVm()];
    world.seeds = [lostSeed()];
    world.leftovers = [{ owner: lostOwner, vmid: 310, state: 'gone' }];
    await onServer(world.steps(), { realTime: true }, async (server) => {
      const { client } = server;
      await ensureCollection(client, 'pve');
      const schedule = client.schedule.getHandle('gc-pve');
      const round = async (number: number): Promise<{ workflowId: string; runId: string }> => {
        let ended = { workflowId: '', runId: '' };
        await schedule.trigger(ScheduleOverlapPolicy.SKIP);
        await eventually(async () => {
          const { info } = await schedule.describe();
          const started = info.recentActions[number]?.action.workflow;
          assert.ok(started, 'the round has not begun');
          const { workflowId, firstExecutionRunId: runId } = started;
          await client.workflow.getHandle(workflowId, runId).result();
          ended = { workflowId, runId };
        }, 30_000);
        return ended;
      };
      await round(0);
      change(world);
      const { workflowId, runId } = await round(1);
      keep(name, await showHistory(server, workflowId, runId));
    });
  };
}

export const collectingRecordings: Record<string, Recording> = {
  collectRound: recordRound(() => undefined),
  collectRoundHeld: recordRound((world) => {
    world.version = '900';
  }),
  collectRoundBlind: recordRound((world) => {
    world.problems.push({ reason: 'Unreachable', scope: 'provider' });
  }),
};
