/** Takes in what the outside says: the object as claimed, and signals. Pure changes of state. */
import type { OrphanSignal } from './contract/collection.ts';
import type { ClaimProxyResult } from './contract/steps.ts';
import type { DesiredProxy } from './contract/proxy.ts';
import { addEvent, applyHealth, troublesOf, type ProxyState } from './state.ts';
import { rememberedVm } from './vmRecord.ts';

type Claimed = Extract<ClaimProxyResult, { found: true }>;

/** Applies a fresh reading of the object. */
export function acceptClaim(state: ProxyState, claim: ClaimProxyResult): void {
  state.objectFound = claim.found;
  if (!claim.found) return;
  const before = state.desired;
  if (!before) restore(state, claim);
  endCollection(state);
  state.desired = claim.desired;
  state.deleting ||= claim.deleting;
  acceptAnnotations(state, claim.desired);
  if (before && isChanged(before, claim.desired)) specChanged(state, before, claim.desired);
  if (claim.desired.mode === 'External') acceptExternal(state, before, claim.desired);
}

/** A Secret changes the wanted spec without a new generation. */
function isChanged(before: DesiredProxy, after: DesiredProxy): boolean {
  if (before.generation !== after.generation) return true;
  return after.specHash !== null && before.specHash !== after.specHash;
}

/** A new generation lifts what was latched, and what was waited for is tried at once. */
function specChanged(state: ProxyState, before: DesiredProxy, after: DesiredProxy): void {
  state.trouble = null;
  if (before.specHash !== after.specHash) state.replacementLate = false;
  // What was seen during the pause was left as it was.
  if (before.paused && !after.paused) state.lookWanted = true;
}

function acceptExternal(state: ProxyState, before: DesiredProxy | null, now: DesiredProxy): void {
  if (before && (before.address !== now.address || before.port !== now.port)) state.health = [];
}

function acceptAnnotations(state: ProxyState, desired: DesiredProxy): void {
  if (desired.retry !== null && desired.retry !== state.handled.retry) {
    state.handled = { ...state.handled, retry: desired.retry };
    requestRetry(state);
  }
  if (desired.forceDelete !== null && desired.forceDelete !== state.handled.forceDelete) {
    // Set too early it is used up, too: it must not wait for a deletion that means no force.
    state.handled = { ...state.handled, forceDelete: desired.forceDelete };
    requestForceDelete(state);
  }
}

/** `retry`: whatever was latched or waited for is tried now. */
export function requestRetry(state: ProxyState): void {
  addEvent(state, 'Normal', 'RetryRequested', 'Retry', 'retry requested: trying again now');
  wake(state);
  state.trouble = state.trouble?.nextAtMs === null ? null : state.trouble;
  if (state.repairTrouble) state.lookWanted = true;
}

/** `orphan`: nothing is believed of it but that a look is due, at Kubernetes first. */
export function requestCollection(state: ProxyState, { provider, vmid }: OrphanSignal): void {
  if (state.deleting) return;
  if (!state.orphans.some((known) => known.vmid === vmid && known.provider === provider)) {
    state.orphans.push({ provider, vmid });
  }
  state.refreshWanted = true;
}

/** The object is there (again): of what the collection told only leftovers count, and nothing is an orphan. */
function endCollection(state: ProxyState): void {
  const { leftovers } = state;
  state.collected = false;
  state.removals = state.removals.filter(({ purpose }) => purpose !== 'orphan');
  state.orphans = state.orphans.filter(({ vmid }) => leftovers.some((one) => one.vmid === vmid));
}

/** Another Proxy keeps the ip:port this one claims (`heldBy`), or does not dispute it any more (`null`). */
export function noteConflict(state: ProxyState, heldBy: string | null): void {
  if (heldBy !== null && state.addressHeldBy !== heldBy) {
    const message = `the address is that of Proxy ${heldBy}, whose VM reports it`;
    addEvent(state, 'Warning', 'AddressConflict', 'Observe', message);
  }
  state.addressHeldBy = heldBy;
}

/** `forceDelete`: acts only on an object under deletion. */
export function requestForceDelete(state: ProxyState): void {
  if (!state.deleting) {
    const message = 'force delete ignored: delete the Proxy first, then ask again';
    addEvent(state, 'Warning', 'ForceDeleteIgnored', 'ForceDelete', message);
    return;
  }
  state.forced = true;
}

/** Every wait for a next attempt ends now. Latched failures stay latched. */
export function wake(state: ProxyState): void {
  for (const trouble of troublesOf(state)) {
    if (trouble.nextAtMs !== null) trouble.nextAtMs = 0;
  }
}

/** A run that starts on an object with a past takes over what its status recorded. */
function restore(state: ProxyState, { recorded, firstClaim, desired }: Claimed): void {
  state.historyKnown = firstClaim;
  state.handled = recorded.handled;
  state.everReady = recorded.everReady;
  state.leftovers = recorded.leftovers;
  const vm = rememberedVm(recorded);
  if (vm) state.cloneEverSent = true;
  if (vm?.ip) state.lookWanted = true;
  // Only what had an address can have served. Anything else was being made: the line looks at it afresh.
  if (vm?.ip && recorded.everReady) state.serving = vm;
  else if (vm) state.next = { ...vm, everReady: false, ip: null };
  restoreHealth(state, recorded.ip, desired.port, recorded.healthy);
}

/** What the status said counts until the first signal of this run says otherwise. */
function restoreHealth(
  state: ProxyState,
  ip: string | null,
  port: number,
  healthy: boolean | null,
): void {
  if (ip === null || healthy === null) return;
  applyHealth(state, {
    ip,
    port,
    healthy,
    reason: healthy ? 'ProbeSucceeded' : 'ProbeFailed',
    message: 'as the last probe before this run found it',
    run: '',
    sequence: 0,
  });
}
