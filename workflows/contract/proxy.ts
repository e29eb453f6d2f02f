/** What a Proxy is to the workflow: references and facts, never a secret and nothing bulky (design §5). */
import type { Reason } from './errors.ts';

/** Identity of the Kubernetes object. The UID, not the name, decides: a re-created Proxy is another Proxy. */
export interface ProxyRef {
  namespace: string;
  name: string;
  uid: string;
}

export type Mode = 'Managed' | 'External';
export type ReplaceStrategy = 'CreateFirst' | 'DeleteFirst';
export type DeletionPolicy = 'Delete' | 'Retain';

/** Phases of design §2, in the order a Proxy passes through them. */
export const phases = [
  'Pending',
  'Provisioning',
  'Running',
  'Ready',
  'Failed',
  'Deleting',
] as const;
export type Phase = (typeof phases)[number];

export interface Placement {
  region: string | null;
  zone: string | null;
  machineType: string | null;
  image: string | null;
}

/** The wanted state, as `claimProxy` read it. `cloudInit` is present only as part of `specHash`. */
export interface DesiredProxy {
  generation: number;
  mode: Mode;
  /** Name of the provider; empty for External. */
  provider: string;
  placement: Placement;
  /** External only: IP or host without port. */
  address: string | null;
  port: number;
  drainSeconds: number;
  replaceStrategy: ReplaceStrategy;
  deletionPolicy: DeletionPolicy;
  paused: boolean;
  /** SHA-256 (full hex) of design §3. `null` while cloud-init cannot be read (`cloudInitProblem` says why). */
  specHash: string | null;
  cloudInitProblem: string | null;
  /** The worker that read the object knows no such provider; another one may. The sentence names those it knows. */
  providerProblem: string | null;
  retry: string | null;
  forceDelete: string | null;
}

/** Power of a VM; `unreachable`: its node does not answer, so nobody knows. */
export const vmPowers = [
  'running',
  'stopped',
  'paused',
  'hibernated',
  'io-error',
  'unreachable',
] as const;
export type VmPower = (typeof vmPowers)[number];

/** A seed's file is named after its VM, with this at the end (design §3). */
export const seedSuffix = '-seed.iso';

/** `vms/<vmid>/<name>`; names no node, because VMs migrate (spec, What lands on Proxmox). */
export function providerIdFor(vmid: number, name: string): string {
  return `vms/${vmid}/${name}`;
}

/** A VM as the workflow knows it. Recorded before the clone is sent (design §3). */
export interface VmRecord {
  provider: string;
  vmid: number;
  name: string;
  node: string;
  /** Node the request that made the VM was sent to; differs from `node` when the clone had a `target`. */
  templateNode: string;
  templateVmid: number;
  /** Disk keys of the template at the time of the clone; a VM lacking one is not adopted. */
  diskKeys: string[];
  specHash: string;
  seedFile: string;
  /** Nodes that may hold the seed: each node it was ever uploaded to. */
  seedNodes: string[];
  /** Storage the seed was uploaded to; `null`: the one the provider has now. */
  isoStorage: string | null;
  /** UPID of the clone task whose end nobody has seen yet. */
  cloneUpid: string | null;
  /** It came as the answer to our own request, so the task is provably ours and may be aborted (`abortClones`). */
  cloneIsOwn: boolean;
  /** When the last POST clone ended without a clear answer (epoch ms), else null. */
  cloneUnknownAtMs: number | null;
  /** The same two of the last upload of its seed. */
  seedUpid: string | null;
  seedUnknownAtMs: number | null;
  /** The template was protected, so the clone is until `configureVm` clears it. */
  protectionInherited: boolean;
  everReady: boolean;
  startedAtMs: number | null;
  ip: string | null;
  /** Bound of one API request of its provider when the VM was made. */
  requestBoundMs: number;
  /** As last looked at; `null`: not looked at since it was made, or since this run began. */
  power: VmPower | null;
  /** What its guest agent said when it was last asked; `null`: not asked since then. */
  agent: { reachable: boolean; reason: 'AgentAnswered' | Reason; message: string } | null;
  /** Deletion policy that its mark names; `null`: not known. */
  markedPolicy: DeletionPolicy | null;
}

export interface Leftover {
  provider: string;
  vmid: number;
  node: string;
  upid: string;
  reason: string;
}

export interface Handled {
  retry: string | null;
  forceDelete: string | null;
}

export type ConditionType =
  | 'Ready'
  | 'Provisioned'
  | 'Healthy'
  | 'Reconciling'
  | 'Stalled'
  | 'AgentReachable'
  | 'CloudInitAvailable';
export type ConditionStatus = 'True' | 'False' | 'Unknown';

export interface Condition {
  type: ConditionType;
  status: ConditionStatus;
  reason: string;
  message: string;
}

/** The VM being made while another one serves. */
export interface Replacement {
  provider: string;
  vmid: number;
  node: string;
  vmName: string;
  ip: string | null;
  specHash: string;
}

/** Everything `publishStatus` writes; a pure function of the workflow's state makes it. */
export interface ProxyStatus {
  phase: Phase;
  ip: string | null;
  healthy: boolean | null;
  /** Provider the VM is on, which the spec may have left since. */
  provider: string | null;
  providerID: string | null;
  vmid: number | null;
  node: string | null;
  power: VmPower | null;
  vmName: string | null;
  workflowID: string;
  specHash: string | null;
  desiredSpecHash: string | null;
  observedGeneration: number;
  message: string;
  handled: Handled;
  everReady: boolean;
  leftovers: Leftover[];
  replacement: Replacement | null;
  timings: Record<string, number>;
  conditions: Condition[];
}

/** A Kubernetes Event to record together with a status. */
export interface ProxyEvent {
  type: 'Normal' | 'Warning';
  reason: string;
  /** The verb of what was tried, for the `action` field of events.k8s.io. */
  action: string;
  message: string;
}
