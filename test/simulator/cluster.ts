import type { Clock } from './clock.ts';
import { dieWith, missingConfig } from './errors.ts';
import type { Fixture } from './fixture.ts';
import { agentEnabled, bootDisk, digestOf, parseSize, type Config } from './vmConfig.ts';
import type { StorageTable } from './volumes.ts';

export interface NodeState {
  name: string;
  ip: string;
  /**
   * `dead`: powered off, answers `No route to host`; `cut`: packets dropped, 30 s of silence; `refusing`: up, but
   * pveproxy does not listen; `absent`: resolvable but no member of the cluster.
   */
  state: 'up' | 'dead' | 'cut' | 'refusing' | 'absent';
  pvedaemon: boolean;
  pmxcfs: boolean;
  quorum: boolean;
  /** Real ms of the last change of `state` or `quorum`: corosync needs 6.5 s to notice. */
  changedAt: number;
  /** How long the two ssh logins of an upload from another node take. */
  sshSeconds: number;
  /** pvestatd runs. */
  pvestatd: boolean;
  statsAt: number | null;
  /** Real ms before which pvestatd has not started yet, after a boot. */
  statsFrom: number;
  bootedAt: number;
  cpus: number;
  memoryBytes: number;
  bridges: string[];
}

/** The QEMU process of a VM. */
export interface Running {
  pid: number;
  startedAt: number;
  qmpstatus: 'running' | 'paused' | 'prelaunch' | 'io-error' | 'postmigrate' | 'inmigrate';
  /** The config QEMU was started with: the agent device exists only if it was enabled then. */
  bootConfig: Config;
  /** The process hangs: neither QMP nor the agent answers. */
  frozen: boolean;
  agentUp: boolean;
  /** Epoch ms at which the agent began to answer, for measurements. */
  agentUpAt: number | null;
  /** Address of net0 once DHCP gave one. */
  address: string | null;
  proxyPort: number | null;
  /** `user:password` the guest's proxy asks for; `null`: nothing. */
  proxyAuth: string | null;
  /** The guest's proxy answers 502 to everything. */
  proxyBroken: boolean;
  /** Ends what listens on the address. */
  closeProxy: () => void;
  /** Ends timers, agent and proxy of this run. */
  end: AbortController;
}

export interface Vm {
  vmid: number;
  type: 'qemu' | 'lxc';
  node: string;
  config: Config;
  pending: Config;
  pendingDelete: Set<string>;
  running: Running | null;
  /** Until then `qm cleanup` of the previous process may hold the lock (pve/README 31). */
  stoppedAt: number | null;
}

export interface HaResource {
  vmid: number;
  /** `request_state`. */
  wanted: 'started' | 'stopped' | 'ignored' | 'disabled';
  /** As the cluster's manager has it; `null` before its first round. */
  state: 'started' | 'request_stop' | 'stopped' | 'migrate' | 'fence' | 'error' | null;
  /** The local manager has seen it running. */
  confirmed: boolean;
  migrateTo: string | null;
  /** Where the manager believes it to be; `null`: it has not looked yet. */
  node: string | null;
  /** Given, and not yet looked at by the manager. */
  stopCommand: { timeoutSeconds: number } | null;
  stopTimeoutSeconds: number;
  /** Starts that failed in a row. */
  failures: number;
  /** It has been tried on another node. */
  relocated: boolean;
  /** A task of the local manager runs. */
  busy: boolean;
  /** Epoch ms at which it was moved away from a dead node; 0: never. */
  recoveredAt: number;
}

export interface HaManager {
  resources: Map<number, HaResource>;
  /** The managers have been armed by a first resource. */
  active: boolean;
  /** VMIDs destroyed since the last round. */
  deleting: Set<number>;
}

/** What pvestatd last broadcast about a guest. */
export interface VmStats {
  at: number;
  values: Record<string, string | number>;
}

export interface Cluster {
  name: string;
  version: { version: string; release: string; repoid: string };
  nodes: Map<string, NodeState>;
  vms: Map<number, Vm>;
  stats: Map<number, VmStats>;
  /** The copies of nodes that nobody hears: without quorum, or cut off. */
  loneStats: Map<string, Map<number, VmStats>>;
  /** Guests that a node without quorum knows of: those there were when it lost it. */
  frozenGuests: Map<string, ReadonlySet<number>>;
  storages: StorageTable;
  ha: HaManager;
  pools: { id: string; members: string[] }[];
}

export function buildCluster(fixture: Fixture, storages: StorageTable, clock: Clock): Cluster {
  const now = clock.now();
  const cluster: Cluster = {
    name: fixture.clusterName,
    version: { version: fixture.version, release: fixture.release, repoid: fixture.repoid },
    nodes: new Map(),
    vms: new Map(),
    stats: new Map(),
    loneStats: new Map(),
    frozenGuests: new Map(),
    storages,
    ha: { resources: new Map(), active: false, deleting: new Set() },
    pools: fixture.pools.map((pool) => ({ id: pool.id, members: [...pool.members] })),
  };
  for (const node of fixture.nodes) {
    cluster.nodes.set(node.name, {
      ...node,
      bridges: [...node.bridges],
      pvedaemon: true,
      pmxcfs: true,
      quorum: true,
      changedAt: now - 1e9,
      sshSeconds: 0.7,
      pvestatd: true,
      statsAt: null,
      statsFrom: 0,
      bootedAt: now - 6_262_000,
    });
  }
  for (const entry of fixture.containers) {
    cluster.vms.set(
      entry.vmid,
      newVm(entry.vmid, 'lxc', entry.node, new Map([['hostname', entry.name]])),
    );
  }
  for (const entry of fixture.vms) {
    const config: Config = new Map(
      Object.entries(entry.config).map(([key, value]) => [key, String(value)]),
    );
    cluster.vms.set(entry.vmid, newVm(entry.vmid, 'qemu', entry.node, config));
  }
  return cluster;
}

export function newVm(vmid: number, type: 'qemu' | 'lxc', node: string, config: Config): Vm {
  return {
    vmid,
    type,
    node,
    config,
    pending: new Map(),
    pendingDelete: new Set(),
    running: null,
    stoppedAt: null,
  };
}

/** The VM as its node sees it; a VM of another node, or a container, has no such file (pve/README 7). */
export function vmOn(cluster: Cluster, node: string, vmid: number): Vm | undefined {
  const vm = cluster.vms.get(vmid);
  return vm !== undefined && vm.node === node && vm.type === 'qemu' ? vm : undefined;
}

export function requireVm(cluster: Cluster, node: string, vmid: number): Vm {
  const vm = vmOn(cluster, node, vmid);
  if (vm === undefined) throw missingConfig(node, vmid);
  return vm;
}

/** Throws `VM is locked (x)` (AbstractConfig check_lock). */
export function checkLock(vm: Vm, except: readonly string[] = []): void {
  const lock = vm.config.get('lock');
  if (lock !== undefined && !except.includes(lock)) throw dieWith(`VM is locked (${lock})`);
}

export function vmDigest(vm: Vm): string {
  return digestOf(vm.config, vm.pending, vm.pendingDelete);
}

export function isTemplate(vm: Vm): boolean {
  return vm.config.get('template') === '1';
}

/** Config with pending changes merged in: what `GET config` shows and what the next start uses. */
export function mergedConfig(vm: Vm): Config {
  const merged = new Map(vm.config);
  for (const [key, value] of vm.pending) merged.set(key, value);
  for (const key of vm.pendingDelete) merged.delete(key);
  return merged;
}

export function applyPending(vm: Vm): void {
  vm.config = mergedConfig(vm);
  vm.pending = new Map();
  vm.pendingDelete = new Set();
}

export function vmName(vm: Vm): string {
  const name = vm.config.get(vm.type === 'lxc' ? 'hostname' : 'name');
  return name ?? `VM ${vm.vmid}`;
}

/** Numbers shared by status/current, the node's list and the statistics. */
export function vmFacts(
  vm: Vm,
  clock: Clock,
): {
  name: string;
  status: 'running' | 'stopped';
  qmpstatus: string;
  cpus: number;
  maxmem: number;
  maxdisk: number;
  uptime: number;
} {
  const { config } = vm;
  const cores = Number(config.get('cores') ?? 1) * Number(config.get('sockets') ?? 1);
  const disk = bootDisk(vm.config);
  return {
    name: vmName(vm),
    status: vm.running === null ? 'stopped' : 'running',
    qmpstatus: vm.running === null ? 'stopped' : vm.running.qmpstatus,
    cpus: cores,
    maxmem: Number.parseInt(config.get('memory') ?? '512', 10) * 1024 * 1024,
    maxdisk: disk === null ? 0 : (parseSize(disk.options.get('size') ?? '0') ?? 0),
    uptime: vm.running === null ? 0 : Math.floor(clock.since(vm.running.startedAt)),
  };
}

export function agentConfigured(vm: Vm): boolean {
  return agentEnabled(mergedConfig(vm));
}

export function isMember(node: NodeState): boolean {
  return node.state !== 'absent';
}

/** How long corosync takes to notice that somebody is gone (pve/cluster.md 20). */
export const NOTICE_SECONDS = 6.5;

/** Does the cluster know that the node is gone? corosync needs 6.5 s (pve/cluster.md 20). */
export function isOnline(node: NodeState, clock: Clock): boolean {
  const gone = node.state === 'dead' || node.state === 'cut' || !node.pmxcfs;
  return !(gone && clock.since(node.changedAt) > NOTICE_SECONDS);
}
