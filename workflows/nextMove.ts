/** What to do next, from state and time alone. The main loop asks again after every change (level-triggered). */
import { replacementReadyMs } from './contract/budgets.ts';
import type { DeletionPolicy, DesiredProxy, VmRecord } from './contract/proxy.ts';
import { healthOf, type ProxyState, type Removal, type Trouble } from './state.ts';

/** VMs awaiting removal; a further replacement waits while so many are on their way out. */
const maxRemovals = 3;

export type Move =
  /** Nothing to do before `untilMs` (epoch ms; `null`: until something changes). */
  | { kind: 'park'; untilMs: number | null; why: string }
  | { kind: 'refresh' }
  | { kind: 'end' }
  | { kind: 'beginDeletion' }
  | { kind: 'listForDeletion' }
  | { kind: 'remove'; vmid: number }
  | { kind: 'release' }
  | { kind: 'forceRelease' }
  | { kind: 'make'; specHash: string }
  | { kind: 'promote'; vmid: number }
  | { kind: 'mark'; vmid: number; deletionPolicy: DeletionPolicy }
  | { kind: 'discardNext'; vmid: number }
  | { kind: 'reclaim'; vmid: number }
  | { kind: 'retireServing'; vmid: number; specHash: string }
  | { kind: 'markLate'; vmid: number }
  | { kind: 'repair' }
  | { kind: 'collect'; vmid: number };

/** Two moves with one key are the same work: a running one is left alone. */
export function moveKey(move: Move): string {
  const { kind } = move;
  if (kind === 'park') return `park ${move.why}`;
  const subject = 'vmid' in move ? move.vmid : '';
  if (kind === 'mark') return `${kind} ${subject} ${move.deletionPolicy}`;
  return `${kind} ${subject} ${'specHash' in move ? move.specHash : ''}`;
}

/** Total and without memory: what is asked twice of one state at one time is answered alike. `nowMs` is workflow time. */
export function nextMove(state: ProxyState, nowMs: number): Move {
  if (state.released) return { kind: 'end' };
  if (state.refreshWanted && !state.desired) return park(null, 'unread');
  // Never claimed, so nothing was ever made for it: a deletion that came before the finalizer leaves nothing to do.
  if (!state.desired) return orphanMove(state, nowMs) ?? { kind: 'end' };
  if (state.deleting) return deletionMove(state, state.desired, nowMs);
  if (!state.objectFound) return missingMove(state, nowMs);
  if (state.desired.mode === 'External') {
    return park(null, state.desired.paused ? 'Paused' : 'External');
  }
  return withRepair(keepingMove(state, state.desired, nowMs), state, nowMs);
}

function keepingMove(state: ProxyState, desired: DesiredProxy, nowMs: number): Move {
  if (desired.paused) return park(null, 'Paused');
  const move = markMove(state, desired, nowMs) ?? servingMove(state, desired, nowMs);
  const [leftover] = state.orphans;
  if (!leftover || move.kind !== 'park') return move;
  const gate = gateOf(state.removalTrouble, nowMs);
  return gate ? parkFirst(move, gate) : { kind: 'collect', vmid: leftover.vmid };
}

/** The object vanished without a deletion: nothing is done but what the collection of orphans asks for (design §5). */
function missingMove(state: ProxyState, nowMs: number): Move {
  const { serving, next, removals, collected, refreshWanted } = state;
  const move = refreshWanted ? null : orphanMove(state, nowMs);
  if (move) return move;
  const nothingLeft = !serving && !next && removals.length === 0;
  // Whose finalizer was taken off before anything was made has nothing that could ever be collected.
  const nothingMade = state.desired !== null && (isExternal(state.desired) || !mayHaveVms(state));
  const over = nothingLeft && (collected || nothingMade) && !refreshWanted;
  return over ? { kind: 'end' } : park(null, 'ObjectMissing');
}

function isExternal({ mode }: DesiredProxy): boolean {
  return mode === 'External';
}

function orphanMove(state: ProxyState, nowMs: number): Move | null {
  const [orphan] = state.orphans;
  if (orphan) return gateOf(state.removalTrouble, nowMs) ?? { kind: 'collect', vmid: orphan.vmid };
  return removalMove(
    state.removals.filter(({ purpose }) => purpose === 'orphan'),
    nowMs,
  );
}

/** A look at what serves goes before everything that takes time; what only changes the state is done first. */
function withRepair(move: Move, state: ProxyState, nowMs: number): Move {
  if (!state.serving && !state.next?.ip) return move;
  if (move.kind === 'promote' || move.kind === 'discardNext') return move;
  const gate = gateOf(state.repairTrouble, nowMs);
  if (state.lookWanted || (state.repairTrouble && !gate)) return { kind: 'repair' };
  return gate ? parkFirst(move, gate) : move;
}

/** The mark names the deletion policy of today, so that `Retain` is honoured whatever happens to the object (design §3). */
function markMove(state: ProxyState, desired: DesiredProxy, nowMs: number): Move | null {
  const { serving, markTrouble } = state;
  const { deletionPolicy } = desired;
  if (!serving || serving.markedPolicy === deletionPolicy) return null;
  const gate = gateOf(markTrouble, nowMs);
  // What else is to be done goes on meanwhile.
  if (gate) return parkFirst(servingMove(state, desired, nowMs), gate);
  return { kind: 'mark', vmid: serving.vmid, deletionPolicy };
}

function deletionMove(state: ProxyState, desired: DesiredProxy, nowMs: number): Move {
  if (state.forced) return releaseGate(state, nowMs) ?? { kind: 'forceRelease' };
  // Whose finalizer was taken off meanwhile has nobody who could end the pause: what is left is for the collection.
  if (desired.paused) return state.objectFound ? park(null, 'DeletionPaused') : { kind: 'end' };
  if (state.serving || state.next) return { kind: 'beginDeletion' };
  const managed = desired.mode === 'Managed';
  if (managed && !state.listedForDeletion && mayHaveVms(state)) {
    return gateOf(state.removalTrouble, nowMs) ?? { kind: 'listForDeletion' };
  }
  return removalMove(state.removals, nowMs) ?? releaseGate(state, nowMs) ?? { kind: 'release' };
}

/** A finalizer that could not be removed is tried again at its pace; no other trouble holds it up. */
function releaseGate({ removalTrouble }: ProxyState, nowMs: number): Move | null {
  return removalTrouble?.step === 'releaseProxy' ? gateOf(removalTrouble, nowMs) : null;
}

/** A deletion that never sent a clone needs no provider at all (cases.md 17 b). */
function mayHaveVms(state: ProxyState): boolean {
  return !state.historyKnown || state.cloneEverSent;
}

function servingMove(state: ProxyState, desired: DesiredProxy, nowMs: number): Move {
  const { serving, next } = state;
  const wanted = desired.specHash;
  if (wanted === null) return withoutCloudInit(state, desired, nowMs);
  if (serving?.specHash === wanted) {
    if (next) return { kind: 'discardNext', vmid: next.vmid };
    return removalMove(state.removals, nowMs) ?? park(null, 'Serving');
  }
  if (next && next.specHash !== wanted) return { kind: 'discardNext', vmid: next.vmid };
  if (next && healthOf(state, next.ip)?.healthy) return { kind: 'promote', vmid: next.vmid };
  if (!next) {
    const reclaimable = state.removals.find((removal) => isWantedAgain(removal, wanted));
    if (reclaimable) return { kind: 'reclaim', vmid: reclaimable.vm.vmid };
  }
  return makeMove(state, desired, wanted, nowMs);
}

function isWantedAgain(removal: Removal, wanted: string): boolean {
  return removal.purpose === 'replacement' && !removal.destroyed && removal.vm.specHash === wanted;
}

function makeMove(state: ProxyState, desired: DesiredProxy, wanted: string, nowMs: number): Move {
  const { serving, next } = state;
  const deleteFirst = desired.replaceStrategy === 'DeleteFirst';
  const removal = removalMove(state.removals, nowMs);
  const full = !next && state.removals.length >= maxRemovals;
  const first = state.removals.some((entry) => mustGoFirst(entry, wanted, deleteFirst));
  if (removal && (first || full)) return removal;
  if (next?.ip) {
    if (removal?.kind === 'remove') return removal;
    return parkFirst(waitForHealth(state, next, nowMs), removal);
  }
  const gate = gateOf(state.trouble, nowMs);
  if (gate) return removal?.kind === 'remove' ? removal : parkFirst(gate, removal);
  if (serving && deleteFirst) {
    return { kind: 'retireServing', vmid: serving.vmid, specHash: wanted };
  }
  return { kind: 'make', specHash: wanted };
}

/** What has the new VM's name, is half made, or is to be deleted first, goes before anything is made. */
function mustGoFirst(removal: Removal, wanted: string, deleteFirst: boolean): boolean {
  const { purpose, vm } = removal;
  if (purpose === 'leftover') return false;
  return (
    purpose === 'incomplete' || vm.specHash === wanted || (deleteFirst && purpose === 'replacement')
  );
}

/** The VM has its address; a `health` signal makes it Ready, time makes a replacement late. */
function waitForHealth(state: ProxyState, next: VmRecord, nowMs: number): Move {
  if (!state.serving || state.replacementLate || next.startedAtMs === null) {
    return park(null, 'AwaitingHealth');
  }
  const lateAtMs = next.startedAtMs + replacementReadyMs;
  return nowMs >= lateAtMs
    ? { kind: 'markLate', vmid: next.vmid }
    : park(lateAtMs, 'AwaitingHealth');
}

/**
 * A missing Secret is never a change: what serves goes on, what was made for this very object serves as soon as it is healthy,
 * what is to be made waits (design §4).
 */
function withoutCloudInit(state: ProxyState, desired: DesiredProxy, nowMs: number): Move {
  const { serving, next, lastWanted } = state;
  // An edit meanwhile may have wanted something else: nobody knows before the Secret is back.
  const unedited = lastWanted?.generation === desired.generation;
  if (
    next &&
    unedited &&
    next.specHash === lastWanted.specHash &&
    healthOf(state, next.ip)?.healthy
  )
    return { kind: 'promote', vmid: next.vmid };
  if (serving) return removalMove(state.removals, nowMs) ?? park(null, 'CloudInitUnavailable');
  return gateOf(state.trouble, nowMs) ?? { kind: 'refresh' };
}

/** The first removal that can go on; else the wait that ends first. */
function removalMove(removals: readonly Removal[], nowMs: number): Move | null {
  let wait: Move | null = null;
  for (const removal of removals) {
    const gate = removalGate(removal, nowMs);
    if (!gate) return { kind: 'remove', vmid: removal.vm.vmid };
    wait = wait ? parkFirst(wait, gate) : gate;
  }
  return wait;
}

function removalGate({ trouble, drainUntilMs }: Removal, nowMs: number): Move | null {
  const gate = gateOf(trouble, nowMs);
  if (gate) return gate;
  return drainUntilMs !== null && nowMs < drainUntilMs ? park(drainUntilMs, 'Draining') : null;
}

function gateOf(trouble: Trouble | null, nowMs: number): Move | null {
  if (!trouble) return null;
  if (trouble.nextAtMs === null) return park(null, trouble.reason);
  return nowMs < trouble.nextAtMs ? park(trouble.nextAtMs, trouble.reason) : null;
}

function park(untilMs: number | null, why: string): Move {
  return { kind: 'park', untilMs, why };
}

/** Of two waits the one that ends first, under the first one's name. */
function parkFirst(first: Move, second: Move | null): Move {
  if (first.kind !== 'park' || second?.kind !== 'park' || second.untilMs === null) return first;
  if (first.untilMs !== null && first.untilMs <= second.untilMs) return first;
  return { ...first, untilMs: second.untilMs };
}
