/**
 * The seam to Proxmox VE: what the steps need of its REST API, in the words of the field and without HTTP.
 * Every method sends exactly one request and throws `ProviderError`. Shapes follow testdata/pve/9.2.
 */

/** One row of `GET /cluster/resources?type=vm`: live are node, lock and tags; the rest is a hint (pve/README 21). */
export interface VmRow {
  vmid: number;
  type: 'qemu' | 'lxc';
  node: string;
  /** `running`, `stopped`, `paused`, `unknown`, … as pvestatd last saw it. */
  status: string;
  /** Absent while statistics are missing; may be a predecessor's name. */
  name?: string;
  /** Absent means unknown, not «no». */
  template?: boolean;
  lock?: string;
  tags?: string;
}
/** `GET /nodes`. Right after a node's death its VMs still read `running`; this does not (pve/cluster.md 20). */
export interface NodeRow {
  node: string;
  status: 'online' | 'offline' | 'unknown';
}
/** A VM's config: every key as text, as Proxmox stores it; `digest` for conditional writes. */
export interface VmConfig {
  digest: string;
  values: Readonly<Record<string, string>>;
}
/** `status/current`. `status` says only that a QEMU process exists; look at `qmpstatus` (api-facts 5.20). */
export interface VmStatus {
  status: 'running' | 'stopped';
  qmpstatus: string;
  name?: string;
  lock?: string;
  haManaged: boolean;
}
export interface TaskStatus {
  status: 'running' | 'stopped';
  /** `OK`, `WARNINGS: n`, `unexpected status` or the error text; absent while running. */
  exitstatus?: string;
  type: string;
  id: string;
}
/** A row of `GET /nodes/{node}/tasks`; `user` may be unsplit (`u@r!token`) on active tasks (api-facts 2.5). */
export interface TaskRow {
  upid: string;
  node: string;
  type: string;
  id: string;
  user: string;
  endtime?: number;
  status?: string;
}
export interface ContentRow {
  volid: string;
  size: number;
  content: string;
}
export interface StorageStatus {
  enabled: boolean;
  active: boolean;
  shared: boolean;
  content: string[];
  availBytes: number;
}
export interface AgentInterface {
  name: string;
  mac: string | null;
  addresses: { family: 'ipv4' | 'ipv6'; address: string; prefix: number }[];
}
/** Path → privilege → whether paths below have it too, where they have no entry of their own. */
export type PermissionTable = ReadonlyMap<string, ReadonlyMap<string, boolean>>;
export interface CloneParams {
  newid: number;
  name: string;
  description: string;
  storage?: string;
  target?: string;
}

/** Name of a Proxmox task. Its node is inside it, and only that node knows it (pve/cluster.md 1, 2). */
export type Upid = string;

export interface ProxmoxApi {
  getVersion(): Promise<{ version: string }>;
  listVms(): Promise<VmRow[]>;
  listNodes(): Promise<NodeRow[]>;
  /** `kernel` is its release, `null` when the answer does not tell (api-facts 5.5). */
  getNodeStatus(node: string): Promise<{ kernel: string | null }>;
  /** Everything the token holds, by path: the roots and every path of an ACL (api-facts 5.26). */
  listPermissions(): Promise<PermissionTable>;
  /** Effective privileges of the token on one path, with whether the paths below have them too (api-facts 5.26). */
  getPermissions(path: string): Promise<ReadonlyMap<string, boolean>>;
  getVmConfig(node: string, vmid: number): Promise<VmConfig>;
  getVmStatus(node: string, vmid: number): Promise<VmStatus>;
  clone(node: string, templateVmid: number, params: CloneParams): Promise<Upid>;
  /** Keys to set; `delete` lists keys to remove; `digest` makes the write conditional. */
  setVmConfig(
    node: string,
    vmid: number,
    set: Readonly<Record<string, string>>,
    options: { delete?: readonly string[]; digest: string },
  ): Promise<void>;
  /** `size` absolute, for example `20G`. */
  resize(node: string, vmid: number, disk: string, size: string, digest: string): Promise<Upid>;
  start(node: string, vmid: number): Promise<Upid>;
  /** Lets a paused VM go on (api-facts 5.19). */
  resume(node: string, vmid: number): Promise<Upid>;
  stop(node: string, vmid: number): Promise<Upid>;
  destroy(
    node: string,
    vmid: number,
    options: { destroyUnreferencedDisks: boolean },
  ): Promise<Upid>;
  uploadIso(node: string, storage: string, filename: string, image: Uint8Array): Promise<Upid>;
  listIsos(node: string, storage: string): Promise<ContentRow[]>;
  /** `null` when Proxmox answered without a task. */
  deleteVolume(node: string, storage: string, volid: string): Promise<Upid | null>;
  /** Actual size in bytes of a volume (api-facts 5.7). */
  getVolumeSize(node: string, storage: string, volid: string): Promise<number>;
  getStorageStatus(node: string, storage: string): Promise<StorageStatus>;
  getTask(upid: Upid): Promise<TaskStatus>;
  getTaskLog(upid: Upid, limit: number): Promise<string[]>;
  abortTask(upid: Upid): Promise<void>;
  /** Active and finished tasks of one node, newest first; `since` in epoch seconds. */
  listTasks(
    node: string,
    filter: { type?: string; vmid?: number; since?: number; activeOnly?: boolean; limit?: number },
  ): Promise<TaskRow[]>;
  /** `null` when the agent answers but has nothing usable yet (cases.md 7 b–d). */
  getAgentInterfaces(node: string, vmid: number): Promise<AgentInterface[] | null>;
  /** `<user>@<realm>!<tokenid>`, read from the token file; no request. */
  tokenId(): Promise<string>;
}

/** One socket beside those of the steps, so that neither waits for the other; a check's is named after its node. */
export type Lane = 'watch' | `check/${string}`;

/** Bounds of one step attempt that its requests must keep. */
export interface CallContext {
  /** Aborted when the attempt is cancelled or over. */
  signal: AbortSignal;
  /** Epoch ms; a write leaves only if its request bound ends before it (design §3). */
  writesUntilMs: number;
  /** When Temporal last answered the attempt (epoch ms); a write leaves only within `temporalSilenceMs` of it. */
  answeredAtMs?: () => number;
}
