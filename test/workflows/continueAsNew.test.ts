import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApplicationFailure } from '@temporalio/common';
import { FakeWorld, type PlannedFailure } from '../support/fakeWorld.ts';
import { ready } from '../support/storyParts.ts';
import { tellStory, useWorkflowServer, type Story } from '../support/workflowHarness.ts';

const refused: PlannedFailure = {
  type: 'Transient',
  message: 'clone to VM 100000 on pv1-1: connection refused',
  facts: { reason: 'Unreachable', scope: 'provider', retryAfterMs: 200 },
};

/** Temporal's own query for what its UI shows; the summary given at the start is lost with the first run. */
const metadataQuery = '__temporal_workflow_metadata';

const away = ApplicationFailure.create({
  type: 'Transient',
  nonRetryable: true,
  message: 'the API server does not answer',
  details: [{ reason: 'KubernetesUnavailable', scope: 'proxy' }],
});

/** Run IDs of the workflow so far, oldest first, as each run names the one that follows it. */
async function runsOf(story: Story): Promise<string[]> {
  const runs: string[] = [];
  let run = story.handle.firstExecutionRunId;
  while (run !== '') {
    runs.push(run);
    run = await runAfter(story, run);
  }
  return runs;
}

async function runAfter({ handle, env }: Story, run: string): Promise<string> {
  const { events } = await env.client.workflow.getHandle(handle.workflowId, run).fetchHistory();
  return events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId ?? '';
}

/** Waits until the present run is another one than `run`. */
async function untilAnotherRun({ handle, until }: Story, run: string): Promise<void> {
  let current = run;
  const look = async (): Promise<void> => {
    current = (await handle.describe()).runId;
  };
  await until(() => {
    void look();
    return current !== run;
  }, 'a fresh run');
}

describe('a life that continues as new', () => {
  useWorkflowServer();

  it('goes on where it was, with its search attributes and details', async () => {
    const world = new FakeWorld();
    const settings = { suggestContinueAsNewAt: 60, searchAttributes: true };
    await tellStory(
      world,
      async (story) => {
        await ready(story);
        await untilAnotherRun(story, story.handle.firstExecutionRunId);
        const shown = await story.handle.describe();
        assert.deepEqual(shown.searchAttributes['ProxyName'], ['egress/p1']);
        assert.deepEqual(shown.searchAttributes['ProxyPhase'], ['Ready']);
        const metadata = await story.handle.query<{ currentDetails?: string }>(metadataQuery);
        assert.match(metadata.currentDetails ?? '', /^\*\*egress\/p1\*\* — Ready/);
        assert.equal((await story.state()).serving?.vmid, 100000);
        await story.changed({ specHash: 'bbbb', drainSeconds: 0 });
        await story.until(() => world.status?.replacement?.ip === '192.0.2.11', 'a replacement');
        await story.health(true, '192.0.2.11');
        await story.until(() => world.vms.size === 1, 'the old VM gone');
        await story.deleted();
        assert.equal((await story.handle.result()).outcome, 'Deleted');
        assert.ok((await runsOf(story)).length > 2);
      },
      settings,
    );
    assert.equal(world.peak, 2);
    assert.equal(world.vms.size, 0);
    assert.equal(world.seeds.size, 0);
    assert.equal(world.finalizer, false);
  });

  it('keeps reason, attempt and beginning of what it waits for, and the record of the clone', async () => {
    const world = new FakeWorld();
    world.fail('cloneTemplate', ...Array.from({ length: 8 }, () => refused));
    const told = (): string => {
      const provisioned = world.status?.conditions.find(({ type }) => type === 'Provisioned');
      return provisioned?.message ?? '';
    };
    await tellStory(
      world,
      async (story) => {
        await story.until(() => told().includes('attempt 1,'), 'the first attempt');
        const since = /since [^)]+/.exec(told())?.[0] ?? 'no beginning';
        await story.until(() => told().includes('attempt 7,'), 'the seventh attempt');
        assert.ok((await runsOf(story)).length > 1);
        assert.ok(told().includes(since), `${told()} does not say ${since}`);
        await story.until(() => world.status?.ip === '192.0.2.10', 'an address');
        assert.equal(world.peak, 1);
      },
      { suggestContinueAsNewAt: 50 },
    );
  });

  it('loses no signal that arrives at that moment', async () => {
    const world = new FakeWorld();
    await tellStory(
      world,
      async (story) => {
        await ready(story);
        const runsBefore = await runsOf(story);
        for (let round = 1; round <= 30; round += 1) {
          await story.health(round % 2 === 0);
          await story.changed({ drainSeconds: round });
        }
        await story.until(() => world.status?.observedGeneration === 31, 'the last generation');
        await story.until(() => world.status?.phase === 'Ready', 'the last health');
        assert.ok((await runsOf(story)).length > runsBefore.length);
        await story.changed({ drainSeconds: 0 });
        await story.health(false);
        await story.deleted();
        assert.equal((await story.handle.result()).outcome, 'Deleted');
      },
      { suggestContinueAsNewAt: 20 },
    );
    assert.equal(world.vms.size, 0);
  });

  it('does so too while Kubernetes takes no status, and deletes once it does', async () => {
    const world = new FakeWorld();
    await tellStory(
      world,
      async (story) => {
        world.desired = world.desired && { ...world.desired, drainSeconds: 0 };
        await ready(story);
        world.before('publishStatus', () => {
          throw away;
        });
        const { runId } = await story.handle.describe();
        await story.deleted();
        await untilAnotherRun(story, runId);
        assert.equal(world.vms.size, 1);
        world.before('publishStatus', () => undefined);
        assert.equal((await story.handle.result()).outcome, 'Deleted');
      },
      { suggestContinueAsNewAt: 30 },
    );
    assert.equal(world.vms.size, 0);
    assert.equal(world.finalizer, false);
  });

  it('does not take an object for gone that could not be read yet', async () => {
    const world = new FakeWorld();
    let reads = 0;
    world.before('claimProxy', () => {
      reads += 1;
      if (reads <= 4) throw away;
    });
    await tellStory(
      world,
      async (story) => {
        await story.until(() => world.status?.ip === '192.0.2.10', 'an address');
        assert.ok((await runsOf(story)).length > 1);
      },
      // Reached by the history while the second read is under way.
      { suggestContinueAsNewAt: 13 },
    );
  });

  it('adds nothing to its history while nothing happens', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await ready(story);
      await story.settled();
      const { historyLength } = await story.handle.describe();
      await story.skip(30 * 24 * 60 * 60_000);
      assert.equal((await story.handle.describe()).historyLength, historyLength);
    });
  });
});
