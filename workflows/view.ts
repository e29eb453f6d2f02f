/** What of a Proxy's state is shown: which VM, which trouble, which address. Pure. */
import type { VmRecord } from './contract/proxy.ts';
import { healthOf, type Health, type ProxyState, type Trouble } from './state.ts';

/** The VM the status describes: the one that serves, else the one being made. */
export function shownVm(state: ProxyState): VmRecord | null {
  return state.serving ?? state.next ?? (state.deleting ? (state.removals[0]?.vm ?? null) : null);
}

/** Of a Proxy under deletion: its VM is proven gone, only the seed is left. */
export function isVmGone({ deleting, serving, next, removals }: ProxyState): boolean {
  return deleting && !serving && !next && removals[0]?.destroyed === true;
}

/** What is in the way of what the user wants now, or null. */
export function shownTrouble(state: ProxyState): Trouble | null {
  const { trouble, repairTrouble, removalTrouble, markTrouble, removals, deleting } = state;
  const removing = removalTrouble ?? removals.find((removal) => removal.trouble)?.trouble ?? null;
  const shown = deleting ? removing : (repairTrouble ?? trouble ?? removing ?? markTrouble);
  // A worker that went away is nobody's failure and gone before anyone reads of it.
  return shown?.reason === 'Internal' && shown.attempt === 1 ? null : shown;
}

/** Without port; `null` while none is known. */
export function addressOf(state: ProxyState): string | null {
  if (state.desired?.mode === 'External') return state.desired.address;
  return shownVm(state)?.ip ?? null;
}

/** Health of the shown address. A first VM that is healthy counts from its promotion on, an instant later. */
export function shownHealth(state: ProxyState): Health | null {
  const health = healthOf(state, addressOf(state));
  const serves = state.serving !== null || state.desired?.mode === 'External';
  return health?.healthy && !serves ? null : health;
}

/** `null`: no probe has told of the shown address. */
export function healthyOf(state: ProxyState): boolean | null {
  return shownHealth(state)?.healthy ?? null;
}
