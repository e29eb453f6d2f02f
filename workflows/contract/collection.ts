/** What the collection of orphans and its steps tell each other: plain facts, never a secret (design §7). */
import type { ProxyEvent, ProxyRef } from './proxy.ts';

export type GcMode = 'report' | 'delete';

/** The provider's `gc` block as in force during one step. */
export interface CollectionSettings {
  mode: GcMode;
  graceMs: number;
  /** Id of an alarm that a person has looked at. */
  confirmAbsence: string | null;
  /** Bound of one API request. */
  requestBoundMs: number;
}

/** A VM that is provably ours and whose UID belongs to no Proxy. */
export interface OrphanVm {
  vmid: number;
  node: string;
  name: string;
  /** The Proxy it was made for, as its mark names it. */
  owner: ProxyRef;
  /** Why it is not to be removed whatever happens; `null`: it may be. */
  kept: string | null;
}

/** A leftover of a Proxy that exists. `gone`: its VMID is free, or taken by others. `free`: ours, and unlocked. */
export interface SettledLeftover {
  owner: ProxyRef;
  vmid: number;
  state: 'gone' | 'free';
}

/** All VMs of ours on a provider, compared with the Proxies that were listed afterwards. */
export interface Census {
  settings: CollectionSettings;
  /** VMs of ours that have a Proxy, and orphans that may be removed. What stays whatever happens would hide a mass. */
  managed: number;
  orphans: OrphanVm[];
  leftovers: SettledLeftover[];
  /** resourceVersion of the list of Proxies. */
  listVersion: string;
  /** An alarm of the observation that stands; nothing is collected meanwhile. */
  alarm: string | null;
  /** Id of the alarm of the collection that the ProviderHealth shows, for a round that remembers nothing. */
  shownAlarm?: string | null;
}

/** A seed of ours that belongs to no Proxy and no listed VM. */
export interface OrphanSeed {
  node: string;
  storage: string;
  file: string;
  vmName: string;
  /** First 8 digits of the UID it was made for. */
  uidPrefix: string;
  /** What may still need it; `null` when looked at (`examined`) and nothing does. */
  heldBy: string | null;
  /** Every VM that could name the seed was read. Costs a request per VM, so only what is due is examined. */
  examined: boolean;
}

export interface ListSeedsInput {
  provider: string;
  /** `<node> <file>` of the seeds to examine. */
  due: string[];
  /** VMIDs known to have belonged to a UID (by its first 8 digits): a nameless VM there may be the seed's. */
  knownVmids: Record<string, number[]>;
}
export interface ListSeedsResult {
  settings: CollectionSettings;
  orphans: OrphanSeed[];
  /** Nodes that could not be asked. */
  silentNodes: string[];
}

/** Signal `orphan`: this VM may be yours to remove. The run looks for itself. */
export interface OrphanSignal {
  provider: string;
  vmid: number;
}

export interface SignalOrphanInput extends OrphanSignal {
  owner: ProxyRef;
}

/** An orphan over the rounds. */
export interface Remembered {
  firstSeenMs: number;
  /** Rounds that saw it. */
  rounds: number;
  /** What is going to happen to it, in plain words. */
  outlook: string;
}
export interface RememberedVm extends Remembered, OrphanVm {
  /** A person has confirmed an alarm that named it. */
  confirmed: boolean;
}
export interface RememberedSeed extends Remembered, OrphanSeed {
  /** When it was last `examined` (epoch ms); 0 or absent: never. */
  examinedAtMs?: number;
}

/** Nothing is collected until `confirmAbsence` names the id, or what raised it is over (design §7). */
export interface CollectionAlarm {
  id: string;
  kind: 'MassAbsence' | 'ClusterRolledBack';
  message: string;
  /** VMIDs it is about; empty for ClusterRolledBack. */
  vmids: number[];
}

/** Result of one run of `collectOrphans`, and what the next one remembers. */
export interface CollectionReport {
  provider: string;
  /** ISO 8601. */
  at: string;
  mode: GcMode | null;
  graceMs: number;
  /** Why this round could not look; what is remembered is then that of the round before. */
  problem: string | null;
  alarm: CollectionAlarm | null;
  vms: RememberedVm[];
  seeds: RememberedSeed[];
  leftovers: SettledLeftover[];
  /** Highest resourceVersion of a list of Proxies so far. */
  newestVersion: string;
  /** Since when no worker serves the provider (epoch ms). */
  unservedSinceMs: number | null;
}

export interface PublishOrphansInput {
  provider: string;
  vms: number;
  seeds: number;
  leftovers: number;
  alarm: CollectionAlarm | null;
  /** Neither this round nor one it remembers could look: an alarm that is shown stays. */
  blind: boolean;
  problem: string | null;
  /** What is new since the round before. */
  events: ProxyEvent[];
  /** Nobody serves the provider any more: its Schedule is paused. */
  ended: boolean;
}
