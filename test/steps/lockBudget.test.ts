import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApplicationFailure } from '@temporalio/common';
import { waitBudgets } from '../../workflows/contract/budgets.ts';
import type { AwaitedLock } from '../../workflows/contract/steps.ts';
import { powerOn } from '../simulator/power.ts';
import { boundSteps } from '../support/boundSteps.ts';
import { deleting, removing } from '../support/removals.ts';
import type { StepRig } from '../support/stepHarness.ts';

/** The reason a step ends with when a VM is locked and the workflow waits for these locks. */
async function failureWith(
  rig: StepRig,
  awaitedLocks: AwaitedLock[],
): Promise<{ reason: string; message: string; exceeded: boolean }> {
  const bound = boundSteps(rig);
  const failed = await bound.run('stopVm', removing(rig), { awaitedLocks }).then(
    () => assert.fail('the step succeeded'),
    (error: unknown) => error,
  );
  assert.ok(failed instanceof ApplicationFailure);
  assert.equal(failed.type, 'Transient');
  const [facts] = failed.details ?? [];
  assert.ok(typeof facts === 'object' && facts !== null && 'reason' in facts);
  const [measured] = bound.measurements;
  const { message } = failed;
  return { reason: String(facts.reason), message, exceeded: measured?.budgetExceeded === true };
}

function ago(rig: StepRig, ms: number, vmid: number = rig.vmid): AwaitedLock[] {
  return [{ vmid, budgetFromMs: Date.now() - ms }];
}

describe('the budget of the wait for a lock', () => {
  it('runs out after 10 minutes, counts once, and names the VM, its lock and the command that clears it', () =>
    deleting(async (rig) => {
      powerOn(rig.simulator.core, rig.place({ config: { lock: 'backup' } }));
      const over = await failureWith(rig, ago(rig, waitBudgets.lock + 1_000));
      assert.deepEqual([over.reason, over.exceeded], ['BudgetExceeded', true]);
      assert.match(over.message, /VM \d+ on pve1 is locked \(backup\).*for over 10 min/);
      assert.ok(over.message.endsWith(`on pve1: qm unlock ${rig.vmid}`), over.message);
    }));

  it('is not over before, nor for the first look, nor by the wait for another VM', () =>
    deleting(async (rig) => {
      powerOn(rig.simulator.core, rig.place({ config: { lock: 'backup' } }));
      const waits = [
        [],
        ago(rig, waitBudgets.lock - 5_000),
        ago(rig, waitBudgets.lock + 1_000, rig.vmid + 1),
      ];
      for (const awaited of waits) {
        const { reason, exceeded } = await failureWith(rig, awaited);
        assert.deepEqual([reason, exceeded], ['WaitingForLock', false]);
      }
    }));
});
