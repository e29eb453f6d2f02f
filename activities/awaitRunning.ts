/** Waits until the VM really runs: the start task of an HA-managed VM ends before anything happened. */
import type { Step, StepDeps, StepContext } from './deps.ts';
import { findOurVm, statusFields, vmAt } from './facts/vms.ts';
import { transient } from './providerError.ts';
import { hasProcess } from './vm/state.ts';
import { waitBudgets } from '../workflows/contract/budgets.ts';
import type { AwaitRunningResult, VmStepInput } from '../workflows/contract/steps.ts';

/**
 * Looks by listing and live status, because HA may start the VM on another node. Throws Transient `VmStopped` when a
 * VM that HA does not manage is stopped (again), `BudgetExceeded` after a minute; both with `goBack`.
 */
export const awaitRunning: Step<VmStepInput, AwaitRunningResult> = async (deps, context, input) => {
  const { ref, plan, vm } = input;
  const api = deps.providers.api(plan.provider, context.call);
  for (;;) {
    context.call.signal.throwIfAborted();
    const found = await findOurVm(deps, api, ref, vm);
    context.heartbeat({ node: found.node, power: found.power });
    const { vmid, node } = found;
    if (hasProcess(found.power)) {
      context.log.debug({ node, ...statusFields(found) }, 'proxmox vm ensured running');
      return { node };
    }
    if (!found.haManaged) {
      const remedy = `look at the VM's console, and on ${node}: qm start ${vmid}`;
      throw transient(
        'VmStopped',
        `${vmAt(found)} stopped right after its start; starting it again. If that repeats, ${remedy}`,
        { vmid, node, remedy, goBack: true },
      );
    }
    requireBudget(deps, context, found);
    await deps.clock.sleep(deps.pace.runningMs, context.call.signal);
  }
};

function requireBudget(
  deps: StepDeps,
  context: StepContext,
  { vmid, node }: { vmid: number; node: string },
): void {
  const waitedMs = deps.clock.now() - context.scheduledAtMs;
  if (waitedMs <= waitBudgets.running * deps.pace.budgetScale) return;
  const remedy = `ask the HA manager on ${node}: ha-manager status`;
  throw transient(
    'BudgetExceeded',
    `${vmAt({ vmid, node })} is not running ${waitBudgets.running / 1_000} s after its start; ${remedy}`,
    { vmid, node, remedy, goBack: true },
  );
}
