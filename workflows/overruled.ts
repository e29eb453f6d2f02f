/** Whether a move under way is to be cut short. Pure. */
import type { Move } from './nextMove.ts';
import type { ProxyState } from './state.ts';

/**
 * News overrule a move; the move's own progress does not. `otherwise`: the question what to do would be answered differently
 * now; `historyIsLong`: the run is to continue as new. The answer of a moment must never be overruled by that same moment:
 * it would be begun and cancelled without end.
 */
export function isOverruled(
  state: ProxyState,
  move: Move,
  otherwise: () => boolean,
  historyIsLong: boolean,
): boolean {
  if (state.forced) return move.kind !== 'forceRelease';
  switch (move.kind) {
    // These wait for Kubernetes, for ever if it must be, and can be begun anew.
    case 'refresh':
    case 'beginDeletion':
      return historyIsLong;
    case 'make':
    case 'retireServing':
      return wantedDiffers(state, move.specHash) || servingDiffers(state);
    case 'repair':
      return state.deleting || !state.objectFound;
    case 'mark':
      return otherwise();
    case 'remove':
    case 'listForDeletion':
      return (
        (state.objectFound && state.desired?.paused === true) ||
        (move.kind === 'remove' && !isUnderRemoval(state, move.vmid)) ||
        (move.kind === 'listForDeletion' ? otherwise() : servingDiffers(state))
      );
    default:
      return false;
  }
}

/** An orphan whose object came back is none. */
function isUnderRemoval({ removals }: ProxyState, vmid: number): boolean {
  return removals.some(({ vm }) => vm.vmid === vmid);
}

/** What serves may have stopped: that does not wait for a long step. Nothing is repaired while the object is missing. */
function servingDiffers({ lookWanted, serving, deleting, objectFound }: ProxyState): boolean {
  return lookWanted && serving !== null && !deleting && objectFound;
}

function wantedDiffers(state: ProxyState, specHash: string): boolean {
  const { desired, deleting, objectFound } = state;
  return deleting || !objectFound || desired?.paused === true || desired?.specHash !== specHash;
}
