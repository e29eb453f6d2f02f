/** The steps (activities) of the operator: names, inputs and results. Plain JSON, references and facts only. */
import type { WaitKind } from './budgets.ts';
import type {
  Census,
  ListSeedsInput,
  ListSeedsResult,
  PublishOrphansInput,
  SignalOrphanInput,
} from './collection.ts';
import type { TargetReason } from './errors.ts';
import type {
  DeletionPolicy,
  DesiredProxy,
  Handled,
  Leftover,
  ProxyEvent,
  ProxyRef,
  ProxyStatus,
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

/** Why a VM is to be destroyed; decides what the step must read again right before (design §3). */
export type DestroyPurpose = 'deletion' | 'replacement' | 'incomplete' | 'leftover' | 'orphan';

/** A VM whose lock the workflow waits for, and since when the budget of that wait runs (epoch ms). */
export interface AwaitedLock {
  vmid: number;
  budgetFromMs: number;
}
/** What the workflow adds to the input of any step while it waits for locks, so that the step can tell when that took too long. */
export interface AwaitedLocks {
  awaitedLocks?: AwaitedLock[];
}

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

export interface StopVmInput {
  ref: ProxyRef;
  vm: VmRef;
  purpose: DestroyPurpose;
  specHash: string;
  /** The VM's ide2 never named our seed, so `protection` was inherited from the template. */
  protectionInherited: boolean;
  /** UPID of a clone to this VM that our own request started and whose end nobody has seen. */
  ownClone: string | null;
}
/**
 * `gone`: no VM of ours is there (proven). `stopped`: it may be destroyed now. `task`: wait, then ask again.
 * `aborted`: its clone was told to end; wait for that, then ask again.
 */
export type StopVmResult =
  | { kind: 'gone' }
  | { kind: 'aborted' }
  | { kind: 'stopped'; node: string }
  | { kind: 'task'; node: string; upid: string };
export type DestroyVmInput = StopVmInput;
export type DestroyVmResult = { kind: 'gone' } | { kind: 'task'; node: string; upid: string };

export interface DeleteSeedInput {
  /** `null`: its Proxy is known by the name of the seed only. */
  ref: ProxyRef | null;
  provider: string;
  vmName: string;
  seedFile: string;
  node: string;
  /** VMID the seed was made for; the VM there may have been renamed since. `null`: not known. */
  vmid: number | null;
  /** Storage it was uploaded to; `null`: the one the provider has now. */
  isoStorage: string | null;
  /** It goes only while no Proxy of its UID exists, which is asked right before. */
  orphan?: boolean;
}
/** `alsoOn`: other nodes that list it, as far as they answer. */
export type DeleteSeedResult = { kind: 'gone'; alsoOn?: string[] } | { kind: 'task'; upid: string };

export interface ListManagedVmsInput {
  /** `null`: all VMs of ours on the provider, held against all Proxies. */
  ref: ProxyRef | null;
  provider: string;
}
/** A VM that is provably ours and of this Proxy's UID (design §3), whatever spec it was made for. */
export interface ManagedVm {
  vmid: number;
  node: string;
  name: string;
  specHash: string;
}
export interface ListManagedVmsResult {
  /** Of that one Proxy; empty without one. */
  vms: ManagedVm[];
  /** Only without a `ref`. */
  census: Census | null;
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

/** Every step by its name: activity type, label in the UI, log field and heading of the runbook. */
export interface Steps {
  claimProxy(input: ClaimProxyInput): Promise<ClaimProxyResult>;
  resolvePlacement(input: ResolvePlacementInput): Promise<Plan>;
  allocateVmid(input: AllocateVmidInput): Promise<AllocateVmidResult>;
  cloneTemplate(input: CloneTemplateInput): Promise<CloneTemplateResult>;
  uploadSeed(input: UploadSeedInput): Promise<UploadSeedResult>;
  configureVm(input: ConfigureVmInput): Promise<ConfigureVmResult>;
  resizeDisk(input: VmStepInput): Promise<SubmitResult>;
  startVm(input: VmStepInput): Promise<SubmitResult>;
  awaitTask(input: AwaitTaskInput): Promise<AwaitTaskResult>;
  awaitRunning(input: VmStepInput): Promise<AwaitRunningResult>;
  pollAgent(input: PollAgentInput): Promise<PollAgentResult>;
  publishStatus(input: PublishStatusInput): Promise<PublishStatusResult>;
  stopVm(input: StopVmInput): Promise<StopVmResult>;
  destroyVm(input: DestroyVmInput): Promise<DestroyVmResult>;
  deleteSeed(input: DeleteSeedInput): Promise<DeleteSeedResult>;
  releaseProxy(input: ReleaseProxyInput): Promise<ReleaseProxyResult>;
  listManagedVms(input: ListManagedVmsInput): Promise<ListManagedVmsResult>;
  probeProxies(): Promise<void>;
  watchVms(input: WatchVmsInput): Promise<void>;
  checkNode(input: CheckNodeInput): Promise<CheckNodeResult>;
  publishHealth(input: PublishHealthInput): Promise<PublishHealthResult>;
  listSeeds(input: ListSeedsInput): Promise<ListSeedsResult>;
  signalOrphan(input: SignalOrphanInput): Promise<void>;
  publishOrphans(input: PublishOrphansInput): Promise<void>;
}
export type StepName = keyof Steps;

/** Where a step runs, and whether it may change anything: the table that workflows, worker and tests share. */
export interface StepTraits {
  queue: 'main' | 'provider' | 'wait';
  /** `read`: Temporal may repeat it. `write`: one attempt, the workflow decides what comes next. */
  effect: 'read' | 'write';
  /** Requests to Proxmox that one attempt may send, for the attempt's time limit. */
  requests: number;
}
export const stepTraits: Record<StepName, StepTraits> = {
  claimProxy: { queue: 'main', effect: 'read', requests: 2 },
  resolvePlacement: { queue: 'provider', effect: 'read', requests: 0 },
  allocateVmid: { queue: 'provider', effect: 'read', requests: 20 },
  cloneTemplate: { queue: 'provider', effect: 'write', requests: 10 },
  uploadSeed: { queue: 'provider', effect: 'write', requests: 4 },
  configureVm: { queue: 'provider', effect: 'write', requests: 5 },
  resizeDisk: { queue: 'provider', effect: 'write', requests: 4 },
  startVm: { queue: 'provider', effect: 'write', requests: 5 },
  awaitTask: { queue: 'wait', effect: 'read', requests: 2 },
  awaitRunning: { queue: 'wait', effect: 'read', requests: 3 },
  pollAgent: { queue: 'wait', effect: 'read', requests: 4 },
  publishStatus: { queue: 'main', effect: 'read', requests: 2 },
  stopVm: { queue: 'provider', effect: 'write', requests: 12 },
  destroyVm: { queue: 'provider', effect: 'write', requests: 16 },
  deleteSeed: { queue: 'provider', effect: 'write', requests: 16 },
  releaseProxy: { queue: 'main', effect: 'read', requests: 2 },
  listManagedVms: { queue: 'provider', effect: 'read', requests: 40 },
  probeProxies: { queue: 'main', effect: 'read', requests: 0 },
  watchVms: { queue: 'wait', effect: 'read', requests: 0 },
  // Its requests share one bound of their own, `waitMs` of the call.
  checkNode: { queue: 'wait', effect: 'read', requests: 0 },
  // It also tells Proxies, and records Events.
  publishHealth: { queue: 'main', effect: 'read', requests: 10 },
  listSeeds: { queue: 'provider', effect: 'read', requests: 40 },
  // A signal that is sent twice is heeded once.
  signalOrphan: { queue: 'main', effect: 'read', requests: 2 },
  publishOrphans: { queue: 'main', effect: 'read', requests: 20 },
};
