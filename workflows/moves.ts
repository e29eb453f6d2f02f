/** How each move is carried out. What needs no step is a change of state and done at once. */
import { condition } from '@temporalio/workflow';
import { collect } from './collect.ts';
import type { DesiredProxy, VmRecord } from './contract/proxy.ts';
import { decommission } from './decommission.ts';
import { forcedEvent } from './leftBehind.ts';
import type { Life } from './life.ts';
import { listForDeletion } from './listForDeletion.ts';
import type { Move } from './nextMove.ts';
import { placeOf, refOf } from './vmRecord.ts';
import { look, provision } from './provision.ts';
import { repair } from './repair.ts';
import { addEvent, retire, type ProxyState } from './state.ts';

/** Throws StepFailed when a step failed; the caller paces the next try. */
export async function carryOut(life: Life, move: Move): Promise<void> {
  const { state } = life;
  const { desired } = state;
  // What the collection of orphans asks for needs no object.
  if (move.kind === 'collect') return collect(life);
  if (move.kind === 'remove') return removeFirst(life, move.vmid);
  if (!desired) return;
  switch (move.kind) {
    case 'refresh':
      state.refreshWanted = true;
      return condition(() => life.quiet());
    case 'make':
      return provision(life, desired, move.specHash);
    case 'promote':
      return promote(life, desired);
    case 'mark':
      return mark(life, move);
    case 'repair':
      return repair(life);
    case 'retireServing':
      return retireServing(life, desired, move.specHash);
    case 'discardNext':
      return discardNext(state);
    case 'reclaim':
      return reclaim(state, move.vmid);
    case 'markLate':
      state.replacementLate = true;
      return;
    case 'beginDeletion':
      return beginDeletion(life, desired);
    case 'listForDeletion':
      return listForDeletion(life, desired);
    case 'release':
    case 'forceRelease':
      return release(life);
    case 'park':
    case 'end':
      return;
  }
}

/** The new VM serves: published before the old one drains, so that clients follow first. */
async function promote(life: Life, desired: DesiredProxy): Promise<void> {
  const { state } = life;
  const { serving, next } = state;
  if (!next) return;
  state.serving = { ...next, everReady: true };
  state.addressHeldBy = null;
  state.next = null;
  state.everReady = true;
  state.replacementLate = false;
  state.trouble = null;
  state.markTrouble = null;
  state.repairTrouble = null;
  state.timings = { ...state.lineTimings };
  addEvent(
    state,
    'Normal',
    'Ready',
    'Provision',
    `a request went through the proxy at ${next.ip}:${desired.port}`,
  );
  if (serving) await stepDown(life, desired, serving);
}

/**
 * Out of service first (acknowledged), then drained. It stands among the removals from the start, so that nothing that
 * cuts this move short (a deletion, a forced one) can forget it.
 */
async function stepDown(life: Life, desired: DesiredProxy, vm: VmRecord): Promise<void> {
  const { state } = life;
  retire(state, vm, 'replacement', drainUntil(desired, vm.everReady));
  await life.published();
  const removal = state.removals.find((candidate) => candidate.vm === vm);
  if (removal) removal.drainUntilMs = drainUntil(desired, vm.everReady);
}

/** The one write to a VM that serves. Nothing is cut in half: it is tied to the config it was read from. */
async function mark(
  life: Life,
  { deletionPolicy }: Extract<Move, { kind: 'mark' }>,
): Promise<void> {
  const { ref, serving } = life.state;
  if (!serving) return;
  await life.step(
    'configureVm',
    { kind: 'mark', ref, vm: refOf(serving), deletionPolicy, retained: false },
    { ...placeOf(serving), summary: `keep the mark of VM ${serving.vmid} current` },
  );
  serving.markedPolicy = deletionPolicy;
}

/** DeleteFirst: nothing is given up before placement, VMID and template of the new VM are known to do. */
async function retireServing(life: Life, desired: DesiredProxy, specHash: string): Promise<void> {
  const { state } = life;
  await look(life, desired, specHash);
  const { serving } = state;
  if (!serving) return;
  state.serving = null;
  state.repairTrouble = null;
  state.addressHeldBy = null;
  await stepDown(life, desired, serving);
}

function discardNext(state: ProxyState): void {
  if (state.next) retire(state, state.next, 'replacement', null);
  state.next = null;
  state.replacementLate = false;
  state.trouble = null;
}

/** The spec went back to that of a VM on its way out: it is taken up again as it stands. */
function reclaim(state: ProxyState, vmid: number): void {
  const removal = state.removals.find((candidate) => candidate.vm.vmid === vmid);
  if (!removal) return;
  state.removals = state.removals.filter((other) => other !== removal);
  state.next = { ...removal.vm, ip: null, startedAtMs: null };
}

/** Out of discovery first (acknowledged), then drained, then removed (design §5). */
async function beginDeletion(life: Life, desired: DesiredProxy): Promise<void> {
  const { state } = life;
  await life.published();
  // The object was restored meanwhile.
  if (!state.deleting) return;
  const { serving, next } = state;
  state.serving = null;
  state.next = null;
  state.markTrouble = null;
  state.repairTrouble = null;
  for (const vm of [serving, next]) {
    if (!vm) continue;
    if (desired.deletionPolicy === 'Retain' && vm.everReady) retire(state, vm, 'retain', null);
    else retire(state, vm, 'deletion', drainUntil(desired, vm.everReady));
  }
}

function drainUntil(desired: DesiredProxy, everReady: boolean): number | null {
  return everReady ? Date.now() + desired.drainSeconds * 1000 : null;
}

async function removeFirst(life: Life, vmid: number): Promise<void> {
  const removal = life.state.removals.find((candidate) => candidate.vm.vmid === vmid);
  if (removal) await decommission(life, removal);
}

/** The last step: with the finalizer gone the object goes, and this run with it. */
async function release(life: Life): Promise<void> {
  const { state } = life;
  const events = state.events.splice(0);
  const { ref } = state;
  if (state.forced) events.push(forcedEvent(state));
  await life.step('releaseProxy', { ref, events }, { summary: 'remove the finalizer' });
  state.released = true;
}
