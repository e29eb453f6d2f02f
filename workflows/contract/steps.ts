/** Inputs and results of the steps (activities) that make a VM and keep its Proxy. Plain JSON, references and facts only. */
import type { WaitKind } from './budgets.ts';
import type {
  DeletionPolicy,
  DesiredProxy,
  Handled,
  Leftover,
  ProxyEvent,
  ProxyRef,
  ProxyStatus,
  Replacement,
} from './proxy.ts';
import type { Placement } from './proxy.ts';

/** Placement resolved to facts (design §1). Fixed for one run of the line. */
export interface Plan {
  provider: string;
  /** VM name and seed file of design §3. */
  vmName: string;
  seedFile: string;
  specHash: string;
  deletionPolicy: DeletionPolicy;
  /** Node the VM is to land on. */
  node: string;
  image: string;
  machineType: string;
  templateVmid: number;
  cores: number;
  memoryMiB: number;
  diskGiB: number | null;
  storage: string | null;
  isoStorage: string;
  bridge: string | null;
  vlanTag: number | null;
  vmidMin: number;
  vmidMax: number;
  /** Bound of one API request, `requestTimeoutSeconds` of the provider. */
  requestBoundMs: number;
  abortClones: boolean;
}

/** Where a VM of ours is; `node` is a hint that every step checks again. */
export interface VmRef {
  provider: string;
  vmid: number;
  node: string;
  name: string;
}

/** A VM whose lock the workflow waits for, and since when the budget of that wait runs (epoch ms). */
export interface AwaitedLock {
  vmid: number;
  budgetFromMs: number;
}
/** What the workflow adds to the input of any step while it waits for locks, so that the step can tell when that took too long. */
export interface AwaitedLocks {
  awaitedLocks?: AwaitedLock[];
}

/** The VM that the status says was being made beside the one that serves; its address is asked anew. */
export type RecordedReplacement = Omit<Replacement, 'ip'>;

export interface ClaimProxyInput {
  ref: ProxyRef;
}
/** What a run finds recorded in the object's status; all that survives a lost workflow. */
export interface RecordedStatus {
  vmid: number | null;
  node: string | null;
  vmName: string | null;
  provider: string | null;
  specHash: string | null;
  ip: string | null;
  healthy: boolean | null;
  everReady: boolean;
  handled: Handled;
  leftovers: Leftover[];
  /** Absent in results of runs that began before it was read. */
  replacement?: RecordedReplacement | null;
}
export type ClaimProxyResult =
  | { found: false }
  | {
      found: true;
      deleting: boolean;
      /** Our finalizer was set just now: no earlier run can have made a VM for this UID. */
      firstClaim: boolean;
      desired: DesiredProxy;
      recorded: RecordedStatus;
    };

export interface ResolvePlacementInput {
  ref: ProxyRef;
  provider: string;
  placement: Placement;
  specHash: string;
  deletionPolicy: DeletionPolicy;
}

export interface AllocateVmidInput {
  ref: ProxyRef;
  plan: Plan;
  /** VMIDs this run recorded before a clone of it, newest last. */
  recordedVmids: number[];
  /** VMIDs given up for good, and VMIDs of the Proxy's other VMs. */
  avoidVmids: number[];
  /** VMIDs this run destroyed itself, exempt from cooling. */
  ownFreedVmids: number[];
  /** Disk keys recorded for a VM, by VMID; a VM lacking one is `incomplete`. */
  recordedDiskKeys: Record<string, string[]>;
  /** Only a VM that is there is looked for: the answer is `existing`, `gone` or `stuck`. */
  existingOnly?: true;
}
/** What a fresh look at a VM that served found (design §7). */
export interface ExistingVm {
  kind: 'existing';
  vmid: number;
  node: string;
  power: PowerState;
  /** QEMU stands still because its disk cannot be written or read. */
  ioError: boolean;
  lock: string | null;
  tagged: boolean;
  agentEnabled: boolean;
  /** Our seed in its CD-ROM drive: not named there, there and listed, or named and not there (asked while stopped). */
  seed: 'none' | 'listed' | 'missing';
  /** Storage of that seed. */
  isoStorage: string | null;
}
export type PowerState = 'running' | 'stopped' | 'paused' | 'hibernated' | 'unknown';
export type AllocateVmidResult =
  | {
      kind: 'vacant';
      vmid: number;
      templateNode: string;
      diskKeys: string[];
      protectionInherited: boolean;
    }
  | { kind: 'cloning'; vmid: number; node: string; upid: string }
  | { kind: 'ours'; vmid: number; node: string; power: PowerState; seedAttached: boolean }
  | { kind: 'incomplete'; vmid: number; node: string }
  | ExistingVm
  /** No VM of ours has this name: the listing proves it. */
  | { kind: 'gone'; vmid: number }
  | { kind: 'stuck'; vmid: number; node: string; lock: string; remedy: string };

export interface CloneTemplateInput {
  ref: ProxyRef;
  plan: Plan;
  vmid: number;
  templateNode: string;
}
/** A step that may have started a Proxmox task. `null`: nothing had to be done. */
export interface SubmitResult {
  upid: string | null;
}

export interface CloneTemplateResult extends SubmitResult {
  /** The task answers this very request; else it was found at the VMID, and may be somebody else's. */
  own: boolean;
}

export interface UploadSeedInput {
  ref: ProxyRef;
  plan: Plan;
  vm: VmRef;
}
export interface UploadSeedResult extends SubmitResult {
  node: string;
  bytes: number;
}

/** The keys of the specification, before a start. */
export interface ConfigureForStartInput {
  kind: 'start';
  ref: ProxyRef;
  plan: Plan;
  vm: VmRef;
  /** Size of the uploaded seed, which the storage must show before ide2 names it. */
  seedBytes: number;
  clearProtection: boolean;
}
/** Description and tag only, whatever the VM does: the mark is kept current (design §3). */
export interface MarkVmInput {
  kind: 'mark';
  ref: ProxyRef;
  vm: VmRef;
  deletionPolicy: DeletionPolicy;
  /** The Proxy goes and the VM stays. */
  retained: boolean;
}
/** What a VM that served may lack: tag, agent option, and a CD-ROM drive that names an image that is there. */
export interface MendVmInput {
  kind: 'mend';
  ref: ProxyRef;
  vm: VmRef;
  /** The seed its drive names is lost: the drive is emptied. */
  emptyDrive: boolean;
}
export type ConfigureVmInput = ConfigureForStartInput | MarkVmInput | MendVmInput;
export interface ConfigureVmResult {
  changed: string[];
  /** `false`: there is no VM of ours (any more) to mark. */
  found: boolean;
  /** A lock that no task holds: the VM was left without the mark `retained`. */
  unmarkedFor?: string;
}

export interface VmStepInput {
  ref: ProxyRef;
  plan: Plan;
  vm: VmRef;
}

export interface PollAgentInput extends VmStepInput {
  /** One question: silence is an answer, too (`AgentSilent`). */
  once?: true;
  /** Address so far, kept while it is among the best ones. */
  previous?: string | null;
}

export interface AwaitTaskInput {
  provider: string;
  upid: string;
  kind: WaitKind;
  /** `null`: of a seed whose VM is gone. */
  vmid: number | null;
  /** Name of that VM, for the lines about it. */
  vmName?: string;
}
export interface AwaitTaskResult {
  /** Count of `WARNINGS: n`; 0 for `OK`. Both are success. */
  warnings: number;
}

export interface AwaitRunningResult {
  node: string;
}
export interface PollAgentResult {
  ip: string;
  node: string;
}

export interface PublishStatusInput {
  ref: ProxyRef;
  status: ProxyStatus;
  events: ProxyEvent[];
}
export interface PublishStatusResult {
  found: boolean;
}
export interface ReleaseProxyInput {
  ref: ProxyRef;
  events: ProxyEvent[];
}
export interface ReleaseProxyResult {
  released: boolean;
}
