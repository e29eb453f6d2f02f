/**
 * One Proxy's life: ask what is to be done, do it, ask again. Signals only change state; a move under way is
 * cancelled exactly when the same question would be answered differently now.
 */
import {
  CancellationScope,
  condition,
  continueAsNew,
  defineQuery,
  isCancellation,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { applySignals } from './signals.ts';
import {
  stateQueryName,
  type ProxyStateView,
  type ProxyWorkflowInput,
  type ProxyWorkflowResult,
} from './contract/messages.ts';
import { createLife, StepFailed, type Life } from './life.ts';
import { leftBehind } from './leftBehind.ts';
import { carryOut } from './moves.ts';
import { moveKey, nextMove, type Move } from './nextMove.ts';
import { describe, sentenceOf } from './conditions.ts';
import { isOverruled } from './overruled.ts';
import { addEvent, initialState, type ProxyState, type Trouble } from './state.ts';
import { messageOf, phaseOf } from './status.ts';
import { timeOf } from './times.ts';
import { nextTrouble } from './trouble.ts';
import { shownTrouble } from './view.ts';

const stateQuery = defineQuery<ProxyStateView>(stateQueryName);

/** A run's arguments: identity, and after continue-as-new everything the run before knew. */
type ProxyRun = Omit<ProxyWorkflowInput, 'carried'> & { carried?: ProxyState };

/** Ends when nothing is left to be done for the object: released, given up by force, or collected. */
export async function proxy(input: ProxyRun): Promise<ProxyWorkflowResult> {
  // A run of an earlier release may have known less than this one does.
  const state = { ...initialState(input.ref, input.searchAttributes), ...input.carried };
  setHandler(stateQuery, () => viewOf(state), {
    description: 'phase, step, what is waited for and since when, VMs, leftovers',
  });
  applySignals(state);
  const life = createLife(state);
  await condition(() => (!state.refreshWanted && life.quiet()) || historyIsLong());
  for (;;) {
    // Before anything is concluded: the object may not have been read yet.
    if (historyIsLong() && !state.released) await continueLater(life, input);
    const move = nextMove(state, Date.now());
    if (move.kind === 'end') break;
    if (move.kind === 'park') await parked(state, move);
    else await underWay(life, move);
  }
  await condition(() => life.resting());
  life.stop();
  return { outcome: outcomeOf(state), left: leftBehind(state) };
}

function outcomeOf(state: ProxyState): ProxyWorkflowResult['outcome'] {
  if (state.forced) return 'ForceDeleted';
  if (state.collected) return 'Collected';
  return state.desired === null || !state.released ? 'Gone' : 'Deleted';
}

/** Waits until the answer to «what next?» changes, by news or by time. Adds no history by itself. */
async function parked(state: ProxyState, move: Extract<Move, { kind: 'park' }>): Promise<void> {
  const key = moveKey(move);
  const changed = (): boolean => moveKey(nextMove(state, Date.now())) !== key || historyIsLong();
  if (move.untilMs === null) await condition(changed);
  else await condition(changed, Math.max(1, move.untilMs - Date.now()));
}

/** Carries a move out; ends early when another one is due. A step's failure becomes the state's trouble. */
async function underWay(life: Life, move: Move): Promise<void> {
  const { state } = life;
  const key = moveKey(move);
  // A repair tells what it sees in the place of what stopped the one before: the count of tries goes on from that.
  const repairedBefore = state.repairTrouble;
  const scope = new CancellationScope({ cancellable: true });
  const ended = { value: false };
  const run = scope
    .run(() => carryOut(life, move))
    .catch((error: unknown) => noteFailure(state, move, error, scope, repairedBefore))
    .finally(() => {
      ended.value = true;
    });
  const otherwise = (): boolean => moveKey(nextMove(state, Date.now())) !== key;
  await condition(() => ended.value || isOverruled(state, move, otherwise, historyIsLong()));
  if (!ended.value) scope.cancel();
  // A forced deletion waits for nothing, not even for a request under way.
  await condition(() => ended.value || (state.forced && move.kind !== 'forceRelease'));
  if (ended.value) await run;
}

function noteFailure(
  state: ProxyState,
  move: Move,
  error: unknown,
  scope: CancellationScope,
  repairedBefore: Trouble | null,
): void {
  if (error instanceof StepFailed) return noteTrouble(state, move, error, scope, repairedBefore);
  if (isCancellation(error) && scope.consideredCancelled) return;
  throw error;
}

/** Whose trouble it is depends on the move; that of a VM nobody wants made any more is nobody's. */
function noteTrouble(
  state: ProxyState,
  move: Move,
  { step, failure, subject }: StepFailed,
  scope: CancellationScope,
  repairedBefore: Trouble | null,
): void {
  if (!state.deleting && isOfDeletion(move)) return;
  // The object was restored to before its deletion, perhaps: nobody tells that, so it is read.
  if (state.deleting && failure.facts.reason === 'StillWanted') state.refreshWanted = true;
  const slot = troubleSlot(move);
  const cancelled = state.deleting || scope.consideredCancelled;
  if (slot !== 'removalTrouble' && cancelled) return;
  const removal =
    move.kind === 'remove' ? state.removals.find(({ vm }) => vm.vmid === move.vmid) : undefined;
  if (move.kind === 'remove' && !removal) return;
  const earlier = slot === 'repairTrouble' ? repairedBefore : state[slot];
  const before = removal ? removal.trouble : earlier;
  const trouble = nextTrouble(before, step, failure, Date.now(), slot !== 'trouble', subject);
  if (failure.kind === 'failed' && before?.reason !== trouble.reason) {
    addEvent(state, 'Warning', trouble.reason, step, sentenceOf(trouble));
  }
  if (removal) removal.trouble = trouble;
  else state[slot] = trouble;
}

function isOfDeletion({ kind }: Move): boolean {
  return kind === 'listForDeletion' || kind === 'release' || kind === 'forceRelease';
}

/** Where the trouble of a move stands; each removal has a place of its own. */
function troubleSlot({
  kind,
}: Move): 'trouble' | 'markTrouble' | 'repairTrouble' | 'removalTrouble' {
  if (kind === 'repair') return 'repairTrouble';
  if (kind === 'make' || kind === 'retireServing') return 'trouble';
  return kind === 'mark' ? 'markTrouble' : 'removalTrouble';
}

/** Temporal asks for a fresh run before the history gets too long. */
function historyIsLong(): boolean {
  return workflowInfo().continueAsNewSuggested;
}

/** Hands the whole state to a fresh run once nothing is in the air. */
async function continueLater(life: Life, input: ProxyRun): Promise<void> {
  // Stopped first: a background that fails again and again would never be seen idle.
  life.stop();
  await condition(() => life.idle());
  await continueAsNew<typeof proxy>({ ...input, carried: life.state });
}

function viewOf(state: ProxyState): ProxyStateView {
  const { ref, step, serving, next, removals, leftovers, upid } = state;
  const untold = state.kubernetesTrouble;
  const trouble = shownTrouble(state) ?? untold;
  const sinceMs = trouble?.sinceMs ?? state.stepSinceMs;
  return {
    ref,
    phase: phaseOf(state),
    step,
    waitingFor: upid ?? trouble?.blockedBy ?? null,
    since: sinceMs === null ? null : timeOf(sinceMs),
    message: untold ? describe(untold) : messageOf(state),
    serving,
    next,
    removals: removals.map((removal) => removal.vm),
    leftovers,
  };
}
