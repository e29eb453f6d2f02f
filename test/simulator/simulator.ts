import { accessControl } from './auth.ts';
import { startAdminServer } from './admin.ts';
import { scaledClock, type Clock } from './clock.ts';
import { buildCluster, newVm, type Cluster, type NodeState, type Vm } from './cluster.ts';
import type { Core } from './core.ts';
import { requestHandler, type SeenRequest } from './dispatch.ts';
import { accessEndpoints } from './endpoints/access.ts';
import { agentEndpoints } from './endpoints/agent.ts';
import { cloneEndpoints } from './endpoints/clone.ts';
import { clusterEndpoints } from './endpoints/cluster.ts';
import { haEndpoints, newHaResource } from './endpoints/ha.ts';
import { lifecycleEndpoints } from './endpoints/lifecycle.ts';
import { migrateEndpoints } from './endpoints/migrate.ts';
import { nodeEndpoints } from './endpoints/nodes.ts';
import { powerEndpoints } from './endpoints/power.ts';
import { storageEndpoints } from './endpoints/storage.ts';
import { uploadEndpoints } from './endpoints/upload.ts';
import { taskEndpoints } from './endpoints/tasks.ts';
import { vmConfigWriteEndpoints } from './endpoints/vmConfigWrite.ts';
import { vmReadEndpoints } from './endpoints/vmRead.ts';
import { faultQueue, nameFaultChooser, type Faults } from './faults.ts';
import { loadFixture, parseFixture, type Fixture, type FixtureInput } from './fixture.ts';
import { claimNetwork } from './guests.ts';
import { startHaManager } from './ha.ts';
import { startHttpServer, type HttpServer } from './httpServer.ts';
import { lockTable, type LockTable } from './locks.ts';
import { powerOff, powerOn } from './power.ts';
import { refreshStats, startStatistics } from './stats.ts';
import { taskTable, type Task } from './tasks.ts';
import { storageTable, volidOf } from './volumes.ts';
import { drivesOf, isCdrom, parseSize } from './vmConfig.ts';

export interface SimulatorOptions {
  /** A fixture, or the path of a YAML file. */
  fixture: Fixture | FixtureInput | string;
  /** 0 or absent: a free port. */
  port?: number;
  adminPort?: number;
  host?: string;
  tls: { key: string; cert: string };
  /** Real seconds per cluster second: 1 is realistic, 0.01 a hundred times faster. */
  timeScale?: number;
  /** Booted guests listen on addresses of a /16 of their own. */
  proxyNetwork?: boolean;
  clock?: Clock;
  /** A port for every node's API, not only for the first node's. */
  everyNode?: boolean;
  /** Real ms after which an idle connection is closed; pveproxy: 5000. */
  idleMs?: number;
}

/** An ISO file on a simulated storage. */
export interface IsoFile {
  storage: string;
  /** `null` on a shared storage. */
  node: string | null;
  name: string;
  volid: string;
  size: number;
  bytes: Buffer | null;
}

export interface Simulator {
  /** `https://127.0.0.1:<port>` of the first node. */
  url: string;
  adminUrl: string;
  port: number;
  adminPort: number;
  /** URL of each node's API; only the first node without `everyNode`. */
  urls: Readonly<Record<string, string>>;
  /** Every request that was answered or cut, oldest first. */
  requests: SeenRequest[];
  tasks: Task[];
  cluster: Cluster;
  core: Core;
  faults: Faults;
  /** Requests that went through the guests' proxies. */
  proxyRequests: { vmid: number; line: string }[];
  vms(): Vm[];
  isos(): IsoFile[];
  /** Powers a node off or on, cuts it off, stops its daemons. */
  setNode(name: string, change: Partial<NodeChange>): void;
  setTimeScale(scale: number): void;
  /** SIGKILL to a task's worker: no clean-up, `unexpected status`. */
  killTask(upid: string): void;
  /** As if an administrator had run `qm destroy` or pulled the plug. */
  removeVm(vmid: number): void;
  /** A VM or container made by hand, with the disks its config names. */
  addGuest(guest: GuestSpec): void;
  powerOffVm(vmid: number): void;
  /** Writes config keys behind the API's back; `null` removes. */
  editConfig(vmid: number, changes: Readonly<Record<string, string | null>>): void;
  /** A round of pvestatd on every node, now. */
  refreshStats(): void;
  close(): Promise<void>;
}

export interface GuestSpec {
  vmid: number;
  type: 'qemu' | 'lxc';
  node: string;
  config: Readonly<Record<string, string>>;
}

export type NodeChange = Pick<NodeState, 'state' | 'quorum' | 'pvedaemon' | 'pmxcfs' | 'pvestatd'>;

const ENDPOINTS = [
  ...accessEndpoints,
  ...clusterEndpoints,
  ...nodeEndpoints,
  ...taskEndpoints,
  ...storageEndpoints,
  ...uploadEndpoints,
  ...vmReadEndpoints,
  ...vmConfigWriteEndpoints,
  ...powerEndpoints,
  ...cloneEndpoints,
  ...lifecycleEndpoints,
  ...agentEndpoints,
  ...migrateEndpoints,
  ...haEndpoints,
];

/** Starts an imitation of a Proxmox VE 9.2 cluster; see README.md. */
export async function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  const host = options.host ?? '127.0.0.1';
  const fixture =
    typeof options.fixture === 'string'
      ? loadFixture(options.fixture)
      : parseFixture(options.fixture, '(given object)');
  const clock = options.clock ?? scaledClock(options.timeScale ?? 1);
  const core = await buildCore(fixture, clock, options.proxyNetwork === true);
  const { cluster } = core;
  for (const entry of fixture.ha) {
    cluster.ha.resources.set(entry.vmid, newHaResource(entry.vmid, entry.state));
  }
  for (const entry of fixture.vms) {
    const vm = cluster.vms.get(entry.vmid);
    if (entry.running && vm !== undefined) powerOn(core, vm);
  }
  const stops = [startStatistics(cluster, clock, core.times), startHaManager(core)];
  const requests: SeenRequest[] = [];
  const entries = fixture.nodes.filter((node) => node.state === 'up').map((node) => node.name);
  const served = options.everyNode === true ? entries : entries.slice(0, 1);
  const urls: Record<string, string> = {};
  const servers: HttpServer[] = [];
  for (const [index, node] of served.entries()) {
    const server = await startHttpServer({
      host,
      port: index === 0 ? (options.port ?? 0) : 0,
      tls: options.tls,
      handler: requestHandler(core, node, ENDPOINTS, requests),
      idleMs: options.idleMs ?? 5000,
    });
    servers.push(server);
    urls[node] = `https://${host}:${server.port}`;
  }
  const simulator: Simulator = {
    url: urls[served[0] ?? ''] ?? '',
    adminUrl: '',
    port: servers[0]?.port ?? 0,
    adminPort: 0,
    urls,
    requests,
    tasks: core.tasks.all,
    cluster,
    core,
    faults: core.faults,
    proxyRequests: core.proxyRequests,
    vms: () => [...cluster.vms.values()],
    isos: () => listIsos(core),
    setNode: (name, change) => {
      setNode(core, name, change);
    },
    setTimeScale: (scale) => {
      clock.scale = scale;
    },
    killTask: (upid) => {
      const task = core.tasks.find(upid);
      if (task !== undefined) core.tasks.kill(task);
    },
    removeVm: (vmid) => {
      removeVm(core, vmid);
    },
    addGuest: ({ vmid, type, node, config }) => {
      cluster.vms.set(vmid, newVm(vmid, type, node, new Map(Object.entries(config))));
    },
    powerOffVm: (vmid) => {
      const vm = cluster.vms.get(vmid);
      if (vm !== undefined) powerOff(core, vm);
    },
    editConfig: (vmid, changes) => {
      const vm = cluster.vms.get(vmid);
      if (vm === undefined) throw new Error(`no VM ${vmid}`);
      for (const [key, value] of Object.entries(changes)) {
        if (value === null) vm.config.delete(key);
        else vm.config.set(key, value);
      }
    },
    refreshStats: () => {
      for (const node of cluster.nodes.keys()) refreshStats(cluster, node, clock);
    },
    close: async () => {
      for (const stop of stops) stop();
      for (const vm of cluster.vms.values()) vm.running?.end.abort(new Error('simulator closed'));
      await Promise.all([...servers.map((server) => server.close()), admin.close()]);
      await core.network?.close();
    },
  };
  const admin = await startAdminServer(simulator, host, options.adminPort ?? 0);
  simulator.adminPort = admin.port;
  simulator.adminUrl = `http://${host}:${admin.port}`;
  return simulator;
}

async function buildCore(fixture: Fixture, clock: Clock, network: boolean): Promise<Core> {
  const storages = storageTable(fixture.storages, () => clock.now());
  const cluster = buildCluster(fixture, storages, clock);
  addDisks(fixture, cluster, clock);
  const locks = new Map<string, LockTable>();
  const locksOf = (node: string): LockTable => {
    const table = locks.get(node) ?? lockTable(clock);
    locks.set(node, table);
    return table;
  };
  const everyLock: LockTable = {
    withLock: (request, body) => locksOf('').withLock(request, body),
    releaseAll: (owner) => {
      for (const table of locks.values()) table.releaseAll(owner);
    },
  };
  const tasks = taskTable(clock, everyLock, clock.now() - 6_262_000);
  const byName = nameFaultChooser();
  const names = new Map<string, string>();
  tasks.faultFor = (task) => {
    const vm = cluster.vms.get(Number(task.id));
    const pending = names.get(task.authId);
    names.delete(task.authId);
    const name = task.type === 'qmclone' ? pending : vm?.config.get('name');
    return name === undefined ? undefined : byName(task, name);
  };
  return {
    clock,
    times: fixture.times,
    cluster,
    tasks,
    locks: locksOf,
    access: accessControl(fixture, () => clock.now()),
    faults: faultQueue(),
    network: network ? await claimNetwork() : null,
    proxyRequests: [],
    fixtureText: JSON.stringify(fixture),
    nameNextTask: (authId, name) => {
      names.set(authId, name);
    },
  };
}

/** Every disk that a fixture's config names exists. */
function addDisks(fixture: Fixture, cluster: Cluster, clock: Clock): void {
  for (const entry of fixture.vms) {
    const vm = cluster.vms.get(entry.vmid);
    if (vm === undefined) continue;
    for (const { drive } of drivesOf(vm.config)) {
      const match = /^([^:]+):(?:(\d+\/base-[^/]+)\/)?(.+)$/.exec(drive.file);
      const storage = cluster.storages.find(match?.[1] ?? '');
      if (match === null || storage === undefined || isCdrom(drive)) continue;
      const size = parseSize(drive.options.get('size') ?? '') ?? 0;
      cluster.storages.add({
        storage: storage.id,
        name: match[3] ?? '',
        node: storage.shared ? null : vm.node,
        content: 'images',
        format: drive.file.endsWith('.qcow2') ? 'qcow2' : 'raw',
        size,
        used: Math.min(size, entry.usedBytes ?? Math.floor(size / 4)),
        ctime: Math.floor(clock.now() / 1000) - 3600,
        vmid: entry.vmid,
        base: match[2] ?? null,
        bytes: null,
      });
    }
  }
}

function listIsos(core: Core): IsoFile[] {
  return core.cluster.storages.volumes
    .filter((volume) => volume.content === 'iso')
    .map((volume) => ({
      storage: volume.storage,
      node: volume.node,
      name: volume.name.replace(/^iso\//, ''),
      volid: volidOf(volume),
      size: volume.size,
      bytes: volume.bytes,
    }));
}

function setNode(core: Core, name: string, change: Partial<NodeChange>): void {
  const node = core.cluster.nodes.get(name);
  if (node === undefined) throw new Error(`no node '${name}'`);
  const wasDead = node.state === 'dead';
  Object.assign(node, change);
  node.changedAt = core.clock.now();
  if (wasDead && node.state === 'up') boot(core, node);
  if (node.state !== 'dead' || wasDead) return;
  // A power cut: nothing on that node gets to clean up.
  core.tasks.killNode(name);
  for (const vm of core.cluster.vms.values()) if (vm.node === name) powerOff(core, vm);
}

/** A node after power-on: pveproxy and pvestatd take their time (pve/cluster.md 24). */
function boot(core: Core, node: NodeState): void {
  node.bootedAt = core.clock.now();
  node.statsFrom = core.clock.now() + 22_000 * core.clock.scale;
  node.state = 'refusing';
  void core.clock.sleep(8).then(() => {
    if (node.state === 'refusing') node.state = 'up';
  });
}

function removeVm(core: Core, vmid: number): void {
  const vm = core.cluster.vms.get(vmid);
  if (vm === undefined) return;
  powerOff(core, vm);
  for (const volume of core.cluster.storages.volumes.filter((entry) => entry.vmid === vmid)) {
    core.cluster.storages.remove(volume);
  }
  core.cluster.vms.delete(vmid);
}
