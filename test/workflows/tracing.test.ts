import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultPayloadConverter } from '@temporalio/common';
import { z } from 'zod';
import { eventually } from '../support/eventually.ts';
import { FakeWorld } from '../support/fakeWorld.ts';
import { ready } from '../support/storyParts.ts';
import { tellStory, useWorkflowServer, type Story } from '../support/workflowHarness.ts';

/** W3C: version, trace, span, flags. */
const carrier = z.object({ traceparent: z.string().regex(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/) });

/** Trace and span under which each step was scheduled, oldest first; of the present run, if not of `run`. */
async function parentsOf(
  { handle, env }: Story,
  run?: string,
): Promise<{ trace: string; span: string }[]> {
  const { events } = await env.client.workflow.getHandle(handle.workflowId, run).fetchHistory();
  return (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: scheduled }) => {
    const payload = scheduled?.header?.fields?.['_tracer-data'];
    if (payload === null || payload === undefined) return [];
    const { traceparent } = carrier.parse(defaultPayloadConverter.fromPayload(payload));
    const [, trace = '', span = ''] = traceparent.split('-');
    return [{ trace, span }];
  });
}

describe('the trace of a run', () => {
  useWorkflowServer();

  it('goes on under another worker, each step with a span of its own, however often the run was asked', () =>
    tellStory(
      new FakeWorld(),
      async (story) => {
        // Each would draw an id, so that many spans of the next worker would have those of the one before.
        for (let asked = 0; asked < 10; asked += 1) await story.state();
        await ready(story);
        const before = (await parentsOf(story)).length;
        await story.restartWorkers();
        await story.changed({ drainSeconds: 0 });
        await story.deleted();
        await story.handle.result();
        const parents = await parentsOf(story);
        assert.ok(before > 5 && parents.length > before + 5, `${before}, ${parents.length}`);
        assert.equal(new Set(parents.map(({ trace }) => trace)).size, 1);
        assert.equal(new Set(parents.map(({ span }) => span)).size, parents.length);
      },
      { realTime: true },
    ));

  it('goes on in the next run when a run continues as new', () =>
    tellStory(
      new FakeWorld(),
      async (story) => {
        const { handle } = story;
        await ready(story);
        await eventually(async () => {
          assert.notEqual((await handle.describe()).runId, handle.firstExecutionRunId);
          assert.ok((await parentsOf(story)).length > 0);
        }, 30_000);
        await story.deleted();
        await handle.result();
        const both = [
          ...(await parentsOf(story, handle.firstExecutionRunId)),
          ...(await parentsOf(story)),
        ];
        assert.equal(new Set(both.map(({ trace }) => trace)).size, 1);
        assert.equal(new Set(both.map(({ span }) => span)).size, both.length);
      },
      { suggestContinueAsNewAt: 60 },
    ));
});
