/** Making the clone: recorded before it is sent, never sent twice while its outcome is open. */
import { unknownOutcomeSlackMs } from './contract/budgets.ts';
import type { VmRecord } from './contract/proxy.ts';
import type { AllocateVmidResult, Plan } from './contract/steps.ts';
import { awaitTask, write } from './finished.ts';
import { StepFailed, type Life } from './life.ts';
import { placeOfPlan, plannedVm } from './vmRecord.ts';

type Found<K extends AllocateVmidResult['kind']> = Extract<AllocateVmidResult, { kind: K }>;

/** Sends the clone and waits for its task. Throws StepFailed; an answer that never came is noted in the record. */
export async function clone(life: Life, plan: Plan, found: Found<'vacant'>): Promise<VmRecord> {
  const { state } = life;
  refuseWhileUnknown(state.next, found.vmid);
  // Recorded before the request leaves: whatever happens to it, this run knows the VMID (design §3).
  const vm = plannedVm(plan, found.vmid, found.templateNode, found);
  state.next = vm;
  state.cloneEverSent = true;
  await write(async () => {
    vm.cloneUpid = await submit(life, plan, vm);
    if (!plan.abortClones) await awaitClone(life, plan, vm);
  });
  await awaitClone(life, plan, vm);
  vm.node = plan.node;
  return vm;
}

async function submit(life: Life, plan: Plan, vm: VmRecord): Promise<string | null> {
  const { vmid, templateNode } = vm;
  try {
    const { upid } = await life.step(
      'cloneTemplate',
      { ref: life.state.ref, plan, vmid, templateNode },
      { ...placeOfPlan(plan), summary: `clone ${plan.templateVmid} → ${vmid} on ${plan.node}` },
    );
    return upid;
  } catch (error) {
    const unknown = error instanceof StepFailed && error.failure.facts.outcomeUnknown === true;
    vm.cloneUnknownAtMs = unknown ? Date.now() : null;
    throw error;
  }
}

/** A VMID that looks vacant after a clone of unknown outcome counts as vacant only when the request is over. */
function refuseWhileUnknown(before: VmRecord | null, vmid: number): void {
  if (before?.vmid !== vmid || before.cloneUnknownAtMs === null) return;
  const untilMs = before.cloneUnknownAtMs + before.requestBoundMs + unknownOutcomeSlackMs;
  if (Date.now() >= untilMs) return;
  throw new StepFailed('cloneTemplate', {
    kind: 'failed',
    errorClass: 'Transient',
    message: `the clone to VM ${vmid} ended without an answer; it may still appear`,
    facts: {
      reason: 'CloneOutcomeUnknown',
      scope: 'provider',
      vmid,
      retryAfterMs: untilMs - Date.now(),
    },
  });
}

/** Waits for the clone task, if its end was not seen yet. A clone that failed is looked at afresh. */
async function awaitClone(life: Life, plan: Plan, vm: VmRecord): Promise<void> {
  const { cloneUpid: upid } = vm;
  if (upid === null) return;
  try {
    await awaitTask(life, plan, 'clone', vm.vmid, upid);
    vm.cloneUpid = null;
  } catch (error) {
    // Out of time means still running; every other end is an end.
    if (error instanceof StepFailed && error.failure.facts.reason !== 'BudgetExceeded') {
      vm.cloneUpid = null;
    }
    throw error;
  }
}

/** A clone found running: this run waits, the next one looks at what it made. */
export async function followClone(life: Life, plan: Plan, found: Found<'cloning'>): Promise<void> {
  const { state } = life;
  const known = state.next?.vmid === found.vmid ? state.next : null;
  const vm = known ?? plannedVm(plan, found.vmid, found.node, null);
  vm.cloneUpid = found.upid;
  state.next = vm;
  state.cloneEverSent = true;
  const wait = (): Promise<void> => awaitClone(life, plan, vm);
  await (plan.abortClones ? wait() : write(wait));
}
