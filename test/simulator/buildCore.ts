import { accessControl } from './auth.ts';
import type { Clock } from './clock.ts';
import { buildCluster, type Cluster } from './cluster.ts';
import type { Core } from './core.ts';
import { daemonTable } from './daemons.ts';
import { faultQueue } from './faults.ts';
import type { Fixture } from './fixture.ts';
import { claimNetwork } from './guests.ts';
import { lockTable, type LockTable } from './locks.ts';
import { nameFaultChooser, requestFaultChooser } from './nameFaults.ts';
import { taskTable } from './tasks.ts';
import { drivesOf, isCdrom, parseSize } from './vmConfig.ts';
import { storageTable } from './volumes.ts';

/** Name no node has: the table of the locks that pmxcfs keeps for all of them. */
const CLUSTER = '';

/** What a simulator works on, made from a fixture. */
export async function buildCore(fixture: Fixture, clock: Clock, network: boolean): Promise<Core> {
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
    withLock: (request, body) => locksOf(CLUSTER).withLock(request, body),
    releaseAll: (owner) => {
      for (const table of locks.values()) table.releaseAll(owner);
    },
  };
  const tasks = taskTable(clock, everyLock, clock.now() - 6_262_000);
  const byName = nameFaultChooser();
  tasks.faultFor = (task, vmName) => {
    const vm = cluster.vms.get(Number(task.id));
    const name = task.type === 'qmclone' ? vmName : vm?.config.get('name');
    return name === undefined ? undefined : byName(task, name);
  };
  return {
    clock,
    times: fixture.times,
    cluster,
    tasks,
    locks: locksOf,
    access: accessControl(fixture, () => clock.now(), cluster.pools),
    faults: faultQueue(),
    network: network ? await claimNetwork() : null,
    proxyRequests: [],
    fixtureText: JSON.stringify(fixture),
    requestFault: requestFaultChooser(),
    daemons: daemonTable(clock),
    clusterLocks: locksOf(CLUSTER),
    copying: new Map(),
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
