/** The wait for a VM's lock: many attempts, one budget (specification, Timeouts). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApplicationFailure } from '@temporalio/common';
import { waitBudgets } from '../../workflows/contract/budgets.ts';
import type { FailureFacts } from '../../workflows/contract/errors.ts';
import type { AllocateVmidInput, AwaitedLocks } from '../../workflows/contract/steps.ts';
import type { Steps } from '../../workflows/contract/stepTable.ts';
import { FakeWorld } from '../support/fakeWorld.ts';
import { ready } from '../support/storyParts.ts';
import { tellStory, useWorkflowServer } from '../support/workflowHarness.ts';

/** A world whose VM is locked: every look and every stop says so. */
class LockedWorld extends FakeWorld {
  lock: string | null = 'backup';
  /** What the steps were told about locks the workflow waits for, look by look. */
  readonly told: AwaitedLocks['awaitedLocks'][] = [];

  override steps(): Steps {
    const steps = super.steps();
    return {
      ...steps,
      allocateVmid: async (input: AllocateVmidInput & AwaitedLocks) => {
        this.told.push(input.awaitedLocks);
        this.requireUnlocked();
        return steps.allocateVmid(input);
      },
      stopVm: async (input) => {
        this.requireUnlocked();
        return steps.stopVm(input);
      },
    };
  }

  private requireUnlocked(): void {
    if (this.lock === null) return;
    const at = { vmid: 100_000, node: 'pv1-1', lock: this.lock };
    const facts: FailureFacts = { reason: 'WaitingForLock', scope: 'proxy', ...at };
    const message = `VM 100000 on pv1-1 is locked (${this.lock}); waiting`;
    const type = 'Transient';
    throw ApplicationFailure.create({ type, message, nonRetryable: true, details: [facts] });
  }

  condition(): { reason: string; message: string } | undefined {
    return this.status?.conditions.find(({ type }) => type === 'Reconciling');
  }
}

const overBudgetMs = waitBudgets.lock + 5 * 60_000;

describe("a VM's lock", () => {
  useWorkflowServer();

  it('is waited for; after 10 minutes the status says so, since when, and how it is cleared; then the line goes on', async () => {
    const world = new LockedWorld();
    await tellStory(world, async ({ until, skip }) => {
      await until(() => world.condition()?.reason === 'WaitingForLock', 'the wait');
      const since = /since (\S+)\)/.exec(world.condition()?.message ?? '')?.[1] ?? '';
      assert.doesNotMatch(world.status?.message ?? '', /qm unlock/);
      await skip(overBudgetMs);
      await until(() => world.condition()?.reason === 'BudgetExceeded', 'the budget used up');
      assert.match(world.condition()?.message ?? '', /over 10 min.*qm unlock 100000/);
      assert.ok(world.condition()?.message.includes(`since ${since}`), world.condition()?.message);
      assert.match(world.status?.message ?? '', /locked \(backup\).*qm unlock 100000/);
      assert.notEqual(world.status?.phase, 'Failed');
      world.lock = null;
      await skip(6 * 60_000);
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
    });
  });

  it('has its wait told to every look after the first, so that the budget is counted', async () => {
    const world = new LockedWorld();
    await tellStory(world, async ({ skip, until }) => {
      await until(() => world.told.length > 1, 'a second look');
      await skip(20_000);
      const [first, second, ...later] = world.told;
      assert.equal(first, undefined);
      assert.equal(second?.[0]?.vmid, 100_000);
      assert.ok((second?.[0]?.budgetFromMs ?? 0) > 0);
      for (const locks of later) assert.deepEqual(locks, second);
      world.lock = null;
    });
  });

  it('of another kind starts a wait of its own', async () => {
    const world = new LockedWorld();
    await tellStory(world, async ({ skip, until }) => {
      await until(() => world.condition()?.reason === 'WaitingForLock', 'the wait');
      await skip(overBudgetMs);
      await until(() => world.condition()?.reason === 'BudgetExceeded', 'the budget used up');
      world.lock = 'snapshot';
      await skip(6 * 60_000);
      await until(() => world.condition()?.reason === 'WaitingForLock', 'a new wait');
      world.lock = null;
    });
  });

  it('that keeps a VM from being removed is told in the same way', async () => {
    const world = new LockedWorld();
    world.lock = null;
    await tellStory(world, async (story) => {
      await ready(story);
      world.lock = 'backup';
      await story.changed({ drainSeconds: 0 });
      await story.deleted();
      await story.until(() => world.condition()?.reason === 'WaitingForLock', 'the wait');
      await story.skip(overBudgetMs);
      await story.until(() => world.condition()?.reason === 'BudgetExceeded', 'the budget used up');
      assert.match(world.condition()?.message ?? '', /stopVm.*qm unlock 100000/s);
      world.lock = null;
      const ended = story.handle.result();
      await story.skip(6 * 60_000);
      assert.equal((await ended).outcome, 'Deleted');
    });
    assert.equal(world.vms.size, 0);
  });
});
