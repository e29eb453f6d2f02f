/** Signals and queries of the `proxy` workflow, and the names both sides share. */
import type { Leftover, Phase, ProxyRef, VmRecord } from './proxy.ts';
import type { CheckSettings } from './providerSteps.ts';

/** Types and fixed IDs of design §6: the operator finds its own runs by them, also after an update. */
export const proxyWorkflowType = 'proxy';
export const probesWorkflowType = 'probes';
export const probesWorkflowId = 'probes-0';
export const providerWorkflowType = 'provider';
export const collectWorkflowType = 'collectOrphans';
/** Queue of all workflows and of the steps that talk to Kubernetes only. */
export const mainTaskQueue = 'egress-proxies';

/** Workflow ID of one Proxy: one run per ID is the lock between create, delete and collection. */
export function proxyWorkflowId(uid: string): string {
  return `proxy-${uid}`;
}
/** «Details» of its run in the Temporal UI, beside those that change. */
export const proxyWorkflowDetails =
  'Makes, keeps and removes the VM of one Proxy, for as long as the Proxy lives. «Current Details» say where it stands, what it waits for and what helps; docs/operations.md has the rest.';
/** Workflow ID of one provider: it checks the nodes and publishes ProviderHealth. */
export function providerWorkflowId(provider: string): string {
  return `provider-${provider}`;
}
/** ID of the Schedule that collects a provider's orphans; its runs have it in their ID, and the time after it. */
export function collectScheduleId(provider: string): string {
  return `gc-${provider}`;
}
/** Queue of a provider's short steps. */
export function providerQueue(provider: string): string {
  return `pve-${provider}`;
}
/** Queue of a provider's waits (tasks, running, agent), so that waits never starve short steps. */
export function providerWaitQueue(provider: string): string {
  return `pve-${provider}-wait`;
}

/** Names of the signals; each handler only enqueues. */
export const signalNames = {
  desiredChanged: 'desiredChanged',
  observed: 'observed',
  health: 'health',
  providerChanged: 'providerChanged',
  orphan: 'orphan',
  forceDelete: 'forceDelete',
  retry: 'retry',
} as const;
/** Its answer is a `ProxyStateView`. */
export const stateQueryName = 'state';

/** Search attributes of design §6 and their Temporal types. */
export const searchAttributeTypes = {
  ProxyName: 'KEYWORD',
  ProxyProvider: 'KEYWORD',
  ProxyPhase: 'KEYWORD',
  ProxyNode: 'KEYWORD',
  ProxyVmid: 'INT',
  ProxyBlockedBy: 'KEYWORD',
} as const;

/** The object changed: read it again. Carries no spec, so it cannot be stale. */
export interface DesiredChanged {
  generation: number;
  deleting: boolean;
}

/** Signal `observed`: a VM of the Proxy is not as its status says. It only prompts a fresh look. */
export interface Observed {
  /** The Proxy that keeps the ip:port both claim, `<namespace>/<name>`; `null`: nobody disputes it any more. */
  heldBy?: string | null;
}

/** A transition seen by `probeProxies`; ordered by activity run, then sequence. */
export interface HealthSignal {
  run: string;
  sequence: number;
  ip: string;
  port: number;
  healthy: boolean;
  reason: ProbeReason;
  message: string;
}

/** How a probe ended; the table in docs/errors.md is tested against it. */
export const probeReasons = [
  'ProbeSucceeded',
  'ConnectionRefused',
  'ConnectionReset',
  'ProbeTimeout',
  'ProxyAuthenticationRequired',
  'UnexpectedStatus',
  'TlsFailed',
  'ProbeFailed',
] as const;
export type ProbeReason = (typeof probeReasons)[number];

/** What `start` hands to a new run. Identity only: the workflow reads the object itself. */
export interface ProxyWorkflowInput {
  ref: ProxyRef;
  /** All search attributes are registered; a run that used a missing one would be stuck for ever. */
  searchAttributes: boolean;
  /** State carried over by continue-as-new; absent on a fresh start. The workflow owns its shape. */
  carried?: unknown;
}

/** What the Schedule of a provider hands to each run of `collectOrphans`. */
export interface CollectOrphansInput {
  provider: string;
}

/** What a finished run leaves as its result. */
export interface ProxyWorkflowResult {
  /** `Collected`: the object was gone without a deletion this run had seen, and its VMs were orphans. */
  outcome: 'Deleted' | 'ForceDeleted' | 'Gone' | 'Collected';
  /** What stays on Proxmox: leftovers, and whatever a forced deletion had not seen go. For a person, or the collection. */
  left: {
    provider: string;
    /** `null`: the VM is gone, its seed may not be. */
    vmid: number | null;
    node: string;
    upid: string | null;
    seedFile: string | null;
    /** What to do about a VM that was to stay for good and is not marked so. */
    remedy?: string;
  }[];
}

/** What `start` hands to a new run of `provider`. */
export interface ProviderWorkflowInput {
  provider: string;
  /** As configured when it was started; every check brings them up to date. */
  settings: CheckSettings;
  /** State carried over by continue-as-new; absent on a fresh start. The workflow owns its shape. */
  carried?: unknown;
}

/** Answer of the query `state`. */
export interface ProxyStateView {
  ref: ProxyRef;
  phase: Phase;
  step: string | null;
  waitingFor: string | null;
  /** ISO 8601: since when something is in the way, else since when the step is under way. */
  since: string | null;
  message: string;
  serving: VmRecord | null;
  next: VmRecord | null;
  removals: VmRecord[];
  leftovers: Leftover[];
}
