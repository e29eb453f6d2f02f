/** Makes the VM run: starts it, or lets it go on where it was paused. */
import type { Step } from './deps.ts';
import { waitingForLock } from './facts/locks.ts';
import { isRunning } from './facts/tasks.ts';
import { findOurVm, vmAt, type OurVm } from './facts/vms.ts';
import { transient } from './providerError.ts';
import type { TaskRow } from './proxmox/api.ts';
import { hibernationLock } from './vm/state.ts';
import { startAfterStopMs } from '../workflows/contract/budgets.ts';
import type { SubmitResult, VmStepInput } from '../workflows/contract/steps.ts';

/** `since` filters by the start of a task, and a stop may take over a minute (pve/README 33). */
const stopMayTakeMs = 120_000;

/**
 * `upid: null` when the VM runs already. A missing seed and everything else that keeps a VM from starting is told
 * by the task only (api-facts 5.15). Throws Transient `WaitingForLock`, also shortly after a stop.
 */
export const startVm: Step<VmStepInput, SubmitResult> = async (deps, context, input) => {
  const { ref, plan, vm } = input;
  const api = deps.providers.api(plan.provider, context.call);
  const found = await findOurVm(deps, api, ref, vm);
  const { vmid, node, lock } = found;
  if (found.power === 'running') return { upid: null };
  if (lock !== null && lock !== hibernationLock) {
    throw waitingForLock(found, lock, { goBack: true });
  }
  if (found.power === 'paused') {
    context.heartbeat();
    return { upid: await api.resume(node, vmid) };
  }
  const nowMs = deps.clock.now();
  const since = Math.floor((nowMs - startAfterStopMs - stopMayTakeMs) / 1_000);
  const stops = await api.listTasks(node, { type: 'qmstop', vmid, since, limit: 20 });
  requireRestAfterStop(stops, found, nowMs);
  context.heartbeat();
  return { upid: await api.start(node, vmid) };
};

/**
 * A start within a second or two of a stop makes Proxmox hold the VM's file lock for up to 30 s (pve/README 31).
 * Task times are whole seconds of the node's clock; one that runs ahead delays nothing beyond the rest itself.
 */
function requireRestAfterStop(stops: readonly TaskRow[], vm: OurVm, nowMs: number): void {
  const { vmid, node } = vm;
  const rests = stops.map((task) =>
    isRunning(task) ? 1_000 : ((task.endtime ?? 0) + 1) * 1_000 + startAfterStopMs - nowMs,
  );
  const restMs = Math.max(0, ...rests.filter((rest) => rest <= startAfterStopMs + 1_000));
  if (restMs === 0) return;
  throw transient(
    'WaitingForLock',
    `${vmAt(vm)} was stopped a moment ago; starting it in ${Math.ceil(restMs / 1_000)} s`,
    { vmid, node, retryAfterMs: restMs },
  );
}
