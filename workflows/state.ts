/** The whole state of one Proxy's workflow: plain JSON, handed on by continue-as-new. */
import type { OrphanSignal } from './contract/collection.ts';
import type { ErrorClass, FailureScope, Reason } from './contract/errors.ts';
import type { HealthSignal, ProbeReason } from './contract/messages.ts';
import type {
  DesiredProxy,
  Handled,
  Leftover,
  ProxyEvent,
  ProxyRef,
  VmRecord,
} from './contract/proxy.ts';
import type { StepName } from './contract/stepTable.ts';

/** What is in the way right now, since when, and when it is tried again. */
export interface Trouble {
  step: StepName;
  /** The step, and of a wait the kind of its task: what must succeed for this to be over. */
  subject: string;
  errorClass: ErrorClass;
  scope: FailureScope;
  reason: Reason;
  message: string;
  remedy: string | null;
  /** For the search attribute ProxyBlockedBy: `lock:clone`, `node:pv1-2`, `permission`, `slot`, … */
  blockedBy: string | null;
  sinceMs: number;
  /** The lock that is waited for, if it is one. */
  locked: LockWait | null;
  attempt: number;
  /** Epoch ms of the next attempt; `null`: only a change of the spec or `retry` helps. */
  nextAtMs: number | null;
}

/** A lock of one VM, met again and again. */
export interface LockWait {
  vmid: number;
  lock: string;
  /** When it was first met. */
  sinceMs: number;
  /** When the budget of the wait last began; a budget that ran out begins anew. */
  budgetFromMs: number;
}

/** Health of one ip:port, as the last accepted `health` signal told it. */
export interface Health {
  ip: string;
  port: number;
  healthy: boolean;
  reason: ProbeReason;
  message: string;
  run: string;
  sequence: number;
}

/** An old VM on its way out. */
export interface Removal {
  vm: VmRecord;
  /** `retain`: it stays, and its mark has to say so. */
  purpose: 'deletion' | 'replacement' | 'incomplete' | 'leftover' | 'orphan' | 'retain';
  /** Not before this (epoch ms): clients that still use the VM finish meanwhile. `null`: no drain, or it is over. */
  drainUntilMs: number | null;
  /** Nodes whose seed is proven gone. */
  seedGoneFrom: string[];
  destroyed: boolean;
  /** In the way of this removal; another one goes on meanwhile. */
  trouble: Trouble | null;
}

export interface ProxyState {
  ref: ProxyRef;
  searchAttributes: boolean;
  /** `null` until the object was read once. */
  desired: DesiredProxy | null;
  /** What was wanted when cloud-init could last be read, and of which generation of the object. */
  lastWanted: { generation: number; specHash: string } | null;
  objectFound: boolean;
  deleting: boolean;
  /** Every VM ever made for this UID is known to this state, so nothing has to be looked for. */
  historyKnown: boolean;
  /** A clone request may have been sent for this UID. */
  cloneEverSent: boolean;
  /** The VMs of this UID were listed for the decommission. */
  listedForDeletion: boolean;
  serving: VmRecord | null;
  next: VmRecord | null;
  removals: Removal[];
  leftovers: Leftover[];
  /** VMs that the collection told of: orphans while the object is missing, else leftovers that may be cleared. */
  orphans: OrphanSignal[];
  /** The object was missing, and what was left of it was collected. */
  collected: boolean;
  /** VMIDs this workflow freed itself: exempt from cooling. */
  freedVmids: number[];
  handled: Handled;
  forced: boolean;
  everReady: boolean;
  health: Health[];
  /** In the way of making a VM. */
  trouble: Trouble | null;
  /** In the way of the listing or the release of a deletion; each removal has its own. */
  removalTrouble: Trouble | null;
  /** In the way of keeping the mark of the VM that serves current. */
  markTrouble: Trouble | null;
  /** In the way of keeping a VM that has its address as it should be. */
  repairTrouble: Trouble | null;
  /** How often every wait for a next attempt was ended. */
  wakings: number;
  /** In the way of reading the object or writing its status, so the query and the UI alone can tell it. */
  kubernetesTrouble: Trouble | null;
  /** The replacement is not Ready 15 minutes after its start; the old VM serves on. */
  replacementLate: boolean;
  /** The step that runs, for the query, the details and the result of a forced deletion. */
  step: StepName | null;
  /** When it began, and when its wait is given up for a fresh look (epoch ms); `null`: it has no budget of its own. */
  stepSinceMs: number | null;
  stepUntilMs: number | null;
  /** UPID that is awaited now. */
  upid: string | null;
  /** Seconds per step of the last line that led to Ready, and of the line under way. */
  timings: Record<string, number>;
  lineTimings: Record<string, number>;
  /** Events waiting to be recorded with the next status. */
  events: ProxyEvent[];
  /** Somebody saw a VM differ from its status: it is to be looked at afresh. */
  lookWanted: boolean;
  /** When VMs of this Proxy were found gone (epoch ms), newest last. */
  vanishings: number[];
  /** When they were found not to run. */
  stops: number[];
  /** The Proxy that keeps the ip:port this one claims, too; `null`: nobody disputes it. */
  addressHeldBy: string | null;
  /** The object must be read again before anything else is decided. */
  refreshWanted: boolean;
  released: boolean;
  /** Search attributes as last written, so that only changes become history events. */
  shownSearchAttributes: string;
}

/** Of a run that knows nothing yet. The default of every field: `carried` of an earlier release may lack some. */
export function initialState(ref: ProxyRef, searchAttributes: boolean): ProxyState {
  return {
    ref,
    searchAttributes,
    desired: null,
    lastWanted: null,
    objectFound: false,
    deleting: false,
    historyKnown: false,
    cloneEverSent: false,
    listedForDeletion: false,
    serving: null,
    next: null,
    removals: [],
    leftovers: [],
    orphans: [],
    collected: false,
    freedVmids: [],
    handled: { retry: null, forceDelete: null },
    forced: false,
    everReady: false,
    health: [],
    trouble: null,
    removalTrouble: null,
    markTrouble: null,
    repairTrouble: null,
    wakings: 0,
    kubernetesTrouble: null,
    replacementLate: false,
    step: null,
    stepSinceMs: null,
    stepUntilMs: null,
    upid: null,
    timings: {},
    lineTimings: {},
    events: [],
    lookWanted: false,
    vanishings: [],
    stops: [],
    addressHeldBy: null,
    refreshWanted: true,
    released: false,
    shownSearchAttributes: '',
  };
}

/** Addresses whose health is kept: the one that serves, its replacement, and what they were before. */
const keptHealth = 4;

/** The latest health of an address on the wanted port, or null when nobody probed it yet. */
export function healthOf(state: ProxyState, ip: string | null): Health | null {
  const port = state.desired?.port;
  return state.health.find((entry) => entry.ip === ip && entry.port === port) ?? null;
}

/** Takes a `health` signal unless a newer one of the same ip:port was taken before (run, then sequence). */
export function applyHealth(state: ProxyState, signal: HealthSignal): void {
  const { ip, port, healthy, reason, message, run, sequence } = signal;
  const others = state.health.filter((entry) => entry.ip !== ip || entry.port !== port);
  const known = state.health.find((entry) => !others.includes(entry));
  if (known && (known.run > run || (known.run === run && known.sequence >= sequence))) return;
  const latest = { ip, port, healthy, reason, message, run, sequence };
  state.health = [...others, latest].slice(-keptHealth);
}

/** Whoever has this address next, or again, is to be probed before it counts as healthy. */
export function forgetHealth(state: ProxyState, ip: string | null): void {
  state.health = state.health.filter((entry) => entry.ip !== ip);
}

/** Puts a VM on its way out, once. */
export function retire(
  state: ProxyState,
  vm: VmRecord,
  purpose: Removal['purpose'],
  drainUntilMs: number | null,
): void {
  if (state.removals.some((removal) => removal.vm.vmid === vm.vmid)) return;
  state.removals.push({
    vm,
    purpose,
    drainUntilMs,
    seedGoneFrom: [],
    destroyed: false,
    trouble: null,
  });
  // Whoever has this address next is to be probed before it counts as healthy.
  if (vm.ip !== state.serving?.ip) {
    state.health = state.health.filter(({ ip }) => ip !== vm.ip);
  }
}

/** Everything that stands in the way of something. */
export function troublesOf(state: ProxyState): Trouble[] {
  const { trouble, removalTrouble, markTrouble, repairTrouble, removals } = state;
  return [
    trouble,
    removalTrouble,
    markTrouble,
    repairTrouble,
    ...removals.map((removal) => removal.trouble),
  ].filter((one) => one !== null);
}

/** Events kept while none can be recorded, the newest; without a bound they would outgrow what a run may hand on. */
const keptEvents = 200;

/** Goes out with the next status, once; `reason` has its row in docs/errors.md, `message` names what it is about. */
export function addEvent(
  state: ProxyState,
  type: ProxyEvent['type'],
  reason: string,
  action: string,
  message: string,
): void {
  state.events.push({ type, reason, action, message });
  if (state.events.length > keptEvents) state.events.shift();
}
