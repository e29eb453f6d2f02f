import { startAdminServer } from './admin.ts';
import { buildCore } from './buildCore.ts';
import { scaledClock, type Clock } from './clock.ts';
import { newVm, type Cluster, type Vm } from './cluster.ts';
import type { Core } from './core.ts';
import { requestHandler } from './dispatch.ts';
import { newHaResource } from './endpoints/ha.ts';
import { ENDPOINTS } from './endpoints/table.ts';
import type { Faults } from './faults.ts';
import { loadFixture, parseFixture, type Fixture, type FixtureInput } from './fixture.ts';
import { startHaManager } from './ha.ts';
import { startHttpServer, type HttpServer } from './httpServer.ts';
import {
  holdLock,
  listIsos,
  removeVm,
  moveVm,
  setNode,
  setStorage,
  type IsoFile,
  type NodeChange,
  type StorageChange,
} from './operate.ts';
import { changeGuest, powerOff, powerOn, type GuestChange } from './power.ts';
import type { SeenRequest } from './requestLog.ts';
import { refreshStats, startStatistics } from './stats.ts';
import type { Task } from './tasks.ts';

export type { IsoFile } from './operate.ts';

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
  /**
   * A port for every node's API, which answers as long as its node does. Without, there is one, for the cluster: it answers
   * whatever becomes of the first node.
   */
  everyNode?: boolean;
  /** Real ms after which an idle connection is closed; pveproxy: 5000. */
  idleMs?: number;
  /**
   * Cluster seconds for which each worker of pveproxy keeps its copy of the statistics; 2 is realistic and lets reads
   * of `cluster/resources` go backwards (pve/cluster.md 7). 0, the default: every read is fresh.
   */
  workerCacheSeconds?: number;
  /** Requests after which a worker of pveproxy closes its connections and is replaced; default 1000. */
  requestsPerWorker?: number;
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
  /** What befalls a guest that runs. Throws when it has no address. */
  changeGuest(vmid: number, change: GuestChange): void;
  /** On another node, as after a migration. */
  moveVm(vmid: number, node: string): void;
  /** Writes config keys behind the API's back; `null` removes. */
  editConfig(vmid: number, changes: Readonly<Record<string, string | null>>): void;
  /** A round of pvestatd on every node, now. */
  refreshStats(): void;
  /** See `workerCacheSeconds` of the options. */
  setWorkerCache(seconds: number): void;
  /** See `idleMs` of the options; for connections opened from now on. */
  setIdleMs(ms: number): void;
  setStorage(id: string, change: Partial<StorageChange>): void;
  /** Somebody holds a lock: of a node with `node`, of the cluster without. Cluster seconds. */
  holdLock(name: string, seconds: number, node?: string): void;
  /** The daily `pveupdate` of every node: records of old tasks are removed (api-facts 2.5). */
  purgeTasks(): void;
  close(): Promise<void>;
}

export interface GuestSpec {
  vmid: number;
  type: 'qemu' | 'lxc';
  node: string;
  config: Readonly<Record<string, string>>;
}

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
  core.daemons.cacheSeconds = options.workerCacheSeconds ?? 0;
  core.daemons.requestsPerWorker = options.requestsPerWorker ?? 1000;
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
      // A single port stands for the address of the cluster, whatever becomes of the node behind it.
      isThere: () => options.everyNode !== true || cluster.nodes.get(node)?.state === 'up',
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
    changeGuest: (vmid, change) => {
      const vm = cluster.vms.get(vmid);
      if (vm === undefined) throw new Error(`no VM ${vmid}`);
      changeGuest(core, vm, change);
    },
    moveVm: (vmid, node) => {
      moveVm(core, vmid, node);
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
    setWorkerCache: (seconds) => {
      core.daemons.cacheSeconds = seconds;
    },
    setIdleMs: (ms) => {
      for (const server of servers) server.setIdleMs(ms);
    },
    setStorage: (id, change) => {
      setStorage(core, id, change);
    },
    holdLock: (name, seconds, node) => {
      holdLock(core, name, seconds, node);
    },
    purgeTasks: () => {
      for (const node of cluster.nodes.keys()) core.tasks.purge(node);
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
