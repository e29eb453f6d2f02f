/** Takes in what the outside says: the object as claimed, and signals. Pure changes of state. */
import type { OrphanSignal } from './contract/collection.ts';
import type { Reason } from './contract/errors.ts';
import type { HealthSignal } from './contract/messages.ts';
import type { ClaimProxyResult } from './contract/steps.ts';
import type { DesiredProxy } from './contract/proxy.ts';
import { addEvent, applyHealth, healthOf, troublesOf, type ProxyState } from './state.ts';
import { rememberedReplacement, rememberedVm } from './vmRecord.ts';

type Claimed = Extract<ClaimProxyResult, { found: true }>;

/** Applies a fresh reading of the object. */
export function acceptClaim(state: ProxyState, claim: ClaimProxyResult): void {
  state.objectFound = claim.found;
  if (!claim.found) return;
  const before = state.desired;
  if (!before) restore(state, claim);
  endCollection(state);
  state.desired = claim.desired;
  const { generation, specHash } = claim.desired;
  if (specHash !== null) state.lastWanted = { generation, specHash };
  if (claim.deleting && !state.deleting) noteDeletion(state, claim.desired);
  if (!claim.deleting && state.deleting) endDeletion(state, claim.desired);
  acceptAnnotations(state, claim.desired);
  if (before && isChanged(before, claim.desired)) specChanged(state, before, claim.desired);
  if (claim.desired.mode === 'External') acceptExternal(state, before, claim.desired);
}

/** Told once, at its start: what follows has Events of its own. */
function noteDeletion(state: ProxyState, { drainSeconds, paused }: DesiredProxy): void {
  state.deleting = true;
  const drained = state.serving ? `, its VM drains for ${drainSeconds} s` : '';
  const what = paused ? 'it is paused, so the deletion waits' : `it leaves the discovery API${drained}`; // prettier-ignore
  addEvent(state, 'Normal', 'Deleting', 'Delete', `the Proxy is being deleted: ${what}`);
}

/**
 * The same object without its deletion: it was restored from a backup. What served is looked at and serves again, the
 * VM that is wanted is taken up as it stands, and any other goes as one that was replaced.
 */
function endDeletion(state: ProxyState, { specHash }: DesiredProxy): void {
  const removals = state.removals.splice(0);
  Object.assign(state, {
    deleting: false,
    forced: false,
    listedForDeletion: false,
    removalTrouble: null,
  });
  for (const removal of removals) {
    const { vm, purpose, destroyed } = removal;
    const ofDeletion = purpose === 'deletion' || purpose === 'retain';
    if (ofDeletion && !destroyed && vm.everReady && vm.ip !== null && !state.serving) {
      state.serving = vm;
      state.lookWanted = true;
    } else if (ofDeletion && !destroyed && vm.specHash === specHash && !state.next) {
      state.next = { ...vm, ip: null, startedAtMs: null };
    } else {
      const now = ofDeletion ? 'replacement' : purpose;
      state.removals.push({ ...removal, purpose: now, trouble: null });
    }
  }
  const message = 'the Proxy is not being deleted any more: what is left of it is taken up again';
  addEvent(state, 'Warning', 'DeletionWithdrawn', 'Delete', message);
}

/** A Secret changes the wanted spec without a new generation. */
function isChanged(before: DesiredProxy, after: DesiredProxy): boolean {
  if (before.generation !== after.generation) return true;
  return after.specHash !== null && before.specHash !== after.specHash;
}

/** A new generation lifts what was latched, and what was waited for is tried at once. */
function specChanged(state: ProxyState, before: DesiredProxy, after: DesiredProxy): void {
  state.trouble = null;
  if (before.specHash !== after.specHash)
    Object.assign(state, { replacementLate: false, stops: [] });
  // What was seen during the pause was left as it was.
  if (before.paused && !after.paused) state.lookWanted = true;
}

function acceptExternal(state: ProxyState, before: DesiredProxy | null, now: DesiredProxy): void {
  if (before && (before.address !== now.address || before.port !== now.port)) state.health = [];
}

function acceptAnnotations(state: ProxyState, desired: DesiredProxy): void {
  if (desired.retry !== null && desired.retry !== state.handled.retry) {
    state.handled = { ...state.handled, retry: desired.retry };
    requestRetry(state, byAnnotation(desired.retry));
  }
  if (desired.forceDelete !== null && desired.forceDelete !== state.handled.forceDelete) {
    // Set too early it is used up, too: it must not wait for a deletion that means no force.
    state.handled = { ...state.handled, forceDelete: desired.forceDelete };
    requestForceDelete(state, byAnnotation(desired.forceDelete));
  }
}

/** How a person asked, for the Events. The value is his own and may be long. */
function byAnnotation(value: string): string {
  return `annotation ${JSON.stringify(value.slice(0, 60))}`;
}

/** `retry`: whatever was latched or waited for is tried now. `by`: the way it was asked for. */
export function requestRetry(state: ProxyState, by: string): void {
  const message = `retry requested by ${by}: trying again now`;
  addEvent(state, 'Normal', 'RetryRequested', 'Retry', message);
  // Whoever asks has seen to what stopped it.
  state.stops = [];
  wake(state);
  state.trouble = state.trouble?.nextAtMs === null ? null : state.trouble;
  if (state.repairTrouble) state.lookWanted = true;
}

/**
 * `orphan`: nothing is believed of it but that a look is due, at Kubernetes first. A deletion removes its VMs itself, but the
 * object may be gone without anybody having told.
 */
export function requestCollection(state: ProxyState, { provider, vmid }: OrphanSignal): void {
  state.refreshWanted = true;
  if (state.deleting) return;
  if (!state.orphans.some((known) => known.vmid === vmid && known.provider === provider)) {
    state.orphans.push({ provider, vmid });
  }
}

/** The object is there (again): of what the collection told only leftovers count, and nothing is an orphan. */
function endCollection(state: ProxyState): void {
  const { leftovers } = state;
  state.collected = false;
  state.removals = state.removals.filter(({ purpose }) => purpose !== 'orphan');
  state.orphans = state.orphans.filter(({ vmid }) => leftovers.some((one) => one.vmid === vmid));
  // What was in the way of looking for orphans is in nobody's way any more.
  if (!state.deleting && state.orphans.length === 0) state.removalTrouble = null;
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
export function requestForceDelete(state: ProxyState, by: string): void {
  if (!state.deleting) {
    const message = `force delete by ${by} ignored: delete the Proxy first, then ask again`;
    addEvent(state, 'Warning', 'ForceDeleteIgnored', 'ForceDelete', message);
    return;
  }
  const message = `force delete requested by ${by}: the Proxy is let go as it stands`;
  addEvent(state, 'Warning', 'ForceDeleteRequested', 'ForceDelete', message);
  state.forced = true;
}

/**
 * `health`, and an Event when what serves is lost or comes back; that it serves at all has the Event `Ready`. An External
 * proxy has no such Event, and nobody but the probe to tell that it never worked.
 */
export function takeHealth(state: ProxyState, signal: HealthSignal): void {
  const { ip, port } = signal;
  const before = healthOf(state, ip);
  applyHealth(state, signal);
  const now = healthOf(state, ip);
  const external = state.desired?.mode === 'External';
  const serves = ip === state.serving?.ip || external;
  if (!serves || state.deleting || !now) return;
  const known = before?.healthy ?? (external || now.healthy);
  if (known === now.healthy) return;
  if (now.healthy) {
    const message = `requests go through the proxy at ${ip}:${port} again`;
    return addEvent(state, 'Normal', 'Healthy', 'Probe', message);
  }
  const message = `no request goes through the proxy at ${ip}:${port} (${now.reason}): ${now.message}`;
  addEvent(state, 'Warning', 'Unhealthy', 'Probe', message);
}

/** Refused for what the providers config says: a value it lacks, or one that Proxmox does not take (bridge, memory). */
const refusedForConfig: readonly Reason[] = ['PlacementInvalid', 'BadRequest'];

/** `providerChanged`: what waits for the provider is tried now, also what its config of before latched. */
export function takeProviderChange(state: ProxyState): void {
  const { trouble, repairTrouble, desired } = state;
  wake(state);
  if (repairTrouble) state.lookWanted = true;
  const mayBeMended = trouble?.scope === 'provider' || refusedForConfig.some((reason) => reason === trouble?.reason); // prettier-ignore
  if (trouble && mayBeMended) trouble.nextAtMs = 0;
  // It may be in the config now.
  if (desired?.providerProblem) state.refreshWanted = true;
}

/** Every wait for a next attempt ends now, also that for Kubernetes. Latched failures stay latched. */
export function wake(state: ProxyState): void {
  state.wakings += 1;
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
  if (vm?.ip && recorded.everReady) {
    state.serving = vm;
    // Forgotten, it would stay beside the Proxy once the spec wants another one: it is no orphan.
    state.next = rememberedReplacement(recorded);
  } else if (vm) state.next = { ...vm, everReady: false, ip: null };
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
