/** Inputs and results of the steps of a provider: its checks and its watch. */
import type { TargetReason } from './errors.ts';

/** What checking a provider depends on, of config and flags. */
export interface CheckSettings {
  /** URL the nodes are checked through. */
  address: string;
  /** In the order of the config. */
  nodes: string[];
  /** From the start of one round to the start of the next. */
  intervalMs: number;
  /** Bound of one check, all its requests together. */
  timeoutMs: number;
}
export interface CheckNodeInput {
  provider: string;
  node: string;
}
/** One node as a check found it (design §2, ProviderHealth). */
export interface TargetHealth {
  name: string;
  address: string;
  ready: boolean;
  reason: TargetReason;
  message: string;
  latencyMs: number | null;
  /** RFC 3339; `null`: nobody could check it. */
  checkedAt: string | null;
  /** Facts met on the way: version, free space, templates found; never a secret. */
  details: Record<string, string>;
}
export interface CheckNodeResult {
  /** `null`: the config no longer has this node. */
  target: TargetHealth | null;
  settings: CheckSettings;
}
export interface PublishHealthInput {
  provider: string;
  /** In the order of the config. `null`: nobody serves the provider any more, so its ProviderHealth goes. */
  targets: TargetHealth[] | null;
}
export interface PublishHealthResult {
  /** Targets that are ready and were not before; their Proxies were told. */
  recovered: string[];
}

export interface WatchVmsInput {
  provider: string;
}
