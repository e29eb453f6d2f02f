/** Making the clone: recorded before it is sent, never sent twice while its outcome is open. */
import { unknownOutcomeSlackMs } from './contract/budgets.ts';
import type { VmRecord } from './contract/proxy.ts';
import type { AllocateVmidResult, Plan } from './contract/steps.ts';
import { awaitTask, isTaskEnd, write } from './finished.ts';
import { StepFailed, type Life } from './life.ts';
import { addEvent } from './state.ts';
import { placeOf, placeOfPlan, plannedVm } from './vmRecord.ts';

type Place = ReturnType<typeof placeOf>;
type Found<K extends AllocateVmidResult['kind']> = Extract<AllocateVmidResult, { kind: K }>;

/**
 * Sends the clone and waits for its task; `null` when a fresh look is due first. While an earlier clone may still make
 * a VM appear, whatever its VMID, no further one is sent. Throws StepFailed; an answer that never came is recorded.
 */
export async function clone(
  life: Life,
  plan: Plan,
  found: Found<'vacant'>,
): Promise<VmRecord | null> {
  const { state } = life;
  const before = state.next;
  if (before && cloneIsOpen(before)) {
    await write(() => closeClone(life, before));
    return null;
  }
  // Recorded before the request leaves: whatever happens to it, this run knows the VMID (design §3).
  const vm = plannedVm(plan, found.vmid, found.templateNode, found);
  if (before?.name === vm.name) keepSeedOf(before, vm);
  state.next = vm;
  state.cloneEverSent = true;
  // Once for each VMID, and with the status that shows it: a clone that waits for its slot is no news every two seconds.
  if (before?.vmid !== vm.vmid) {
    const message = `cloning template ${vm.templateVmid} to VM ${vm.vmid} on ${plan.node}`;
    addEvent(state, 'Normal', 'Provisioning', 'Provision', message);
  }
  await write(async () => {
    vm.cloneUpid = await submit(life, plan, vm);
    if (!plan.abortClones) await awaitClone(life, placeOfPlan(plan), vm);
  });
  await awaitClone(life, placeOfPlan(plan), vm);
  vm.node = plan.node;
  return vm;
}

/** The seed has the VM's name, not its VMID: where one may be is known from try to try. */
function keepSeedOf(before: VmRecord, vm: VmRecord): void {
  const { seedNodes, seedUpid, seedUnknownAtMs, isoStorage } = before;
  Object.assign(vm, { seedNodes, seedUpid, seedUnknownAtMs, isoStorage });
}

async function submit(life: Life, plan: Plan, vm: VmRecord): Promise<string | null> {
  const { vmid, templateNode } = vm;
  try {
    const { upid, own } = await life.step(
      'cloneTemplate',
      { ref: life.state.ref, plan, vmid, templateNode },
      { ...placeOfPlan(plan), summary: `clone ${plan.templateVmid} → ${vmid} on ${plan.node}` },
    );
    vm.cloneIsOwn = own;
    return upid;
  } catch (error) {
    const unknown = error instanceof StepFailed && error.failure.facts.outcomeUnknown === true;
    vm.cloneUnknownAtMs = unknown ? Date.now() : null;
    throw error;
  }
}

function stillOpen({ vmid }: VmRecord, openMs: number): StepFailed {
  return new StepFailed('cloneTemplate', {
    kind: 'failed',
    errorClass: 'Transient',
    message: `the clone to VM ${vmid} ended without an answer; it may still appear`,
    facts: { reason: 'CloneOutcomeUnknown', scope: 'provider', vmid, retryAfterMs: openMs },
  });
}

/** How much longer a request that ended without an answer (at `unknownAtMs`) may still take effect. */
export function openForMs(unknownAtMs: number | null, { requestBoundMs }: VmRecord): number {
  if (unknownAtMs === null) return 0;
  return unknownAtMs + requestBoundMs + unknownOutcomeSlackMs - Date.now();
}

/** A clone of this VM may still make it appear, so that it is not listed proves nothing yet. */
export function cloneIsOpen(vm: VmRecord): boolean {
  return vm.cloneUpid !== null || openForMs(vm.cloneUnknownAtMs, vm) > 0;
}

/** Waits until the clone can make nothing appear any more. Throws StepFailed while nobody can tell. */
export async function closeClone(life: Life, vm: VmRecord): Promise<void> {
  const openMs = openForMs(vm.cloneUnknownAtMs, vm);
  if (openMs > 0) throw stillOpen(vm, openMs);
  try {
    await awaitClone(life, placeOf(vm), vm);
  } catch (error) {
    if (!(error instanceof StepFailed) || vm.cloneUpid !== null) throw error;
  }
}

/** Waits for the clone task, if its end was not seen yet. A clone that failed is looked at afresh. */
async function awaitClone(life: Life, place: Place, vm: VmRecord): Promise<void> {
  const { cloneUpid: upid } = vm;
  if (upid === null) return;
  try {
    await awaitTask(life, place, 'clone', vm, upid);
    vm.cloneUpid = null;
  } catch (error) {
    // Out of time, or not to be asked about, means that it may go on.
    if (isTaskEnd(error)) vm.cloneUpid = null;
    throw error;
  }
}

/** A clone found running: this run waits, the next one looks at what it made. */
export async function followClone(life: Life, plan: Plan, found: Found<'cloning'>): Promise<void> {
  const { state } = life;
  const known = state.next?.vmid === found.vmid ? state.next : null;
  const vm = known ?? plannedVm(plan, found.vmid, found.node, null);
  // Tied to the VMID, not to us: whoever else took the VMID first may have started it.
  if (vm.cloneUpid !== found.upid) vm.cloneIsOwn = false;
  vm.cloneUpid = found.upid;
  state.next = vm;
  state.cloneEverSent = true;
  const wait = (): Promise<void> => awaitClone(life, placeOfPlan(plan), vm);
  await (plan.abortClones ? wait() : write(wait));
}
