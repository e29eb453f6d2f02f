/** A wait that runs out of its budget: the line, or the removal, looks afresh and goes on with the same VM. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApplicationFailure } from '@temporalio/common';
import type { WaitKind } from '../../workflows/contract/budgets.ts';
import type { FailureFacts } from '../../workflows/contract/errors.ts';
import type { Steps } from '../../workflows/contract/stepTable.ts';
import { FakeWorld } from '../support/fakeWorld.ts';
import { ready } from '../support/storyParts.ts';
import { tellStory, useWorkflowServer } from '../support/workflowHarness.ts';

/** A world in which the first wait of one kind runs out. */
class SlowWorld extends FakeWorld {
  readonly kind: WaitKind;
  /** UPIDs awaited, by kind. */
  readonly awaited: [WaitKind, string][] = [];

  constructor(kind: WaitKind) {
    super();
    this.kind = kind;
  }

  override steps(): Steps {
    const steps = super.steps();
    return {
      ...steps,
      awaitTask: (input) => {
        const { kind, upid, vmid } = input;
        const first = !this.awaited.some(([known]) => known === kind);
        this.awaited.push([kind, upid]);
        if (kind !== this.kind || !first) return steps.awaitTask(input);
        const facts: FailureFacts = {
          reason: 'BudgetExceeded',
          scope: 'proxy',
          upid,
          goBack: true,
        };
        const message = `${kind} VM ${vmid}: task ${upid} is still running; it is left alone`;
        const failure = { type: 'Transient', message, nonRetryable: true, details: [facts] };
        return Promise.reject(ApplicationFailure.create(failure));
      },
    };
  }
}

describe('a budget that runs out', () => {
  useWorkflowServer();

  for (const kind of ['clone', 'upload', 'resize', 'start'] as const) {
    it(`of the ${kind} names the task in the status, and the next round finds the VM instead of making another`, async () => {
      const world = new SlowWorld(kind);
      await tellStory(world, async (story) => {
        await story.until(() => world.status?.message.includes('still running') === true, 'why');
        const [, upid = ''] = world.awaited.find(([known]) => known === kind) ?? [];
        assert.ok(world.status?.message.includes(upid), world.status?.message);
        assert.notEqual(world.status?.phase, 'Failed');
        await story.skip(5_000);
        await ready(story);
        assert.deepEqual([...world.vms.keys()], [100_000]);
      });
      assert.equal(world.peak, 1);
    });
  }

  for (const kind of ['stop', 'destroy', 'seedDelete'] as const) {
    it(`of the ${kind} names the task in the status, and the removal goes on where the VM stands`, async () => {
      const world = new SlowWorld(kind);
      world.desired = world.desired && { ...world.desired, drainSeconds: 0 };
      await tellStory(world, async (story) => {
        await ready(story);
        await story.deleted();
        await story.until(() => world.status?.message.includes('still running') === true, 'why');
        assert.equal(world.finalizer, true);
        assert.equal((await story.handle.result()).outcome, 'Deleted');
      });
      assert.deepEqual([world.vms.size, world.seeds.size, world.finalizer], [0, 0, false]);
    });
  }
});
