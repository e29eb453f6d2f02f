import type { Clock } from './clock.ts';
import { isTemplate, vmFacts, type Cluster, type Vm, type VmStats } from './cluster.ts';
import type { Daemons, ProxyWorker } from './daemons.ts';
import type { Times } from './fixture.ts';

/** Statistics older than this are dropped (pmxcfs rrd_entry_is_old). */
const STATS_LIFETIME_SECONDS = 300;

/** One round of pvestatd on one node: rewrites what `cluster/resources` knows about its guests. */
export function refreshStats(cluster: Cluster, node: string, clock: Clock): void {
  const state = cluster.nodes.get(node);
  if (state === undefined || state.state === 'dead' || state.state === 'absent') return;
  if (!state.pvestatd || clock.now() < state.statsFrom) return;
  const alone = !state.quorum || state.state === 'cut';
  if (alone) {
    // What it broadcasts reaches nobody; it goes on with its own copy (30-noquorum-heal-timeline).
    const own = cluster.loneStats.get(node) ?? new Map(cluster.stats);
    cluster.loneStats.set(node, own);
    const known = cluster.frozenGuests.get(node);
    for (const vm of cluster.vms.values()) {
      if (vm.node !== node || known?.has(vm.vmid) === false) continue;
      own.set(vm.vmid, snapshot(vm, clock));
    }
    return;
  }
  cluster.loneStats.delete(node);
  state.statsAt = clock.now();
  for (const vm of cluster.vms.values()) {
    if (vm.node === node) cluster.stats.set(vm.vmid, snapshot(vm, clock));
  }
}

function snapshot(vm: Vm, clock: Clock): VmStats {
  const facts = vmFacts(vm, clock);
  return {
    at: clock.now(),
    values: {
      name: facts.name,
      status: facts.status === 'stopped' ? 'stopped' : facts.qmpstatus,
      template: isTemplate(vm) ? 1 : 0,
      uptime: facts.uptime,
      maxcpu: facts.cpus,
      cpu: facts.status === 'stopped' ? 0 : 0.03,
      maxmem: facts.maxmem,
      mem: 0,
      memhost: 0,
      maxdisk: facts.maxdisk,
      disk: 0,
      netin: facts.status === 'stopped' ? 0 : 220,
      netout: facts.status === 'stopped' ? 0 : 586,
      diskread: 0,
      diskwrite: 0,
    },
  };
}

/** Starts the daemons, one per node; returns what stops them. */
export function startStatistics(cluster: Cluster, clock: Clock, times: Times): () => void {
  const stopping = new AbortController();
  for (const node of cluster.nodes.keys()) {
    refreshStats(cluster, node, clock);
    const loop = async (): Promise<void> => {
      for (;;) {
        await clock.sleep(secondsToNextRound(cluster, node, clock, times), stopping.signal);
        refreshStats(cluster, node, clock);
      }
    };
    loop().catch(() => undefined);
  }
  return () => {
    stopping.abort(new Error('stopped'));
  };
}

/** The first round comes when the daemon has started; a storage that hangs holds up its one thread (api-facts 5.2). */
function secondsToNextRound(cluster: Cluster, node: string, clock: Clock, times: Times): number {
  const untilStart = -clock.since(cluster.nodes.get(node)?.statsFrom ?? 0);
  if (untilStart > 0) return untilStart;
  const slow = cluster.storages.all
    .filter((storage) => cluster.storages.enabledOn(storage, node))
    .reduce((sum, storage) => sum + (storage.slowSeconds ?? 0), 0);
  return times.statsSeconds + slow;
}

/**
 * A guest's row in `cluster/resources`: existence, node, lock and tags are live, everything else is what pvestatd saw
 * (pve/README 21). A reused VMID shows its predecessor until the next round.
 */
export function resourceRow(
  cluster: Cluster,
  vm: Vm,
  clock: Clock,
  seen: ReadonlyMap<number, VmStats> = cluster.stats,
): Record<string, string | number> {
  const row: Record<string, string | number> = {
    id: `${vm.type}/${vm.vmid}`,
    vmid: vm.vmid,
    node: vm.node,
    type: vm.type,
    status: 'unknown',
  };
  const stats = seen.get(vm.vmid);
  if (stats !== undefined && clock.since(stats.at) <= STATS_LIFETIME_SECONDS) {
    Object.assign(row, stats.values);
  }
  const lock = vm.config.get('lock');
  const tags = vm.config.get('tags');
  if (lock !== undefined) row['lock'] = lock;
  if (tags !== undefined && tags !== '') row['tags'] = tags;
  const ha = cluster.ha.resources.get(vm.vmid);
  // Before the manager's first round the row shows what was asked for (30-ha-timeline-start-stop).
  if (ha !== undefined && ha.wanted !== 'ignored') row['hastate'] = ha.state ?? ha.wanted;
  return row;
}

/**
 * The statistics as one worker of pveproxy has them: its own copy, renewed when it is too old, so that consecutive reads
 * over different connections can go backwards (pve/cluster.md 7).
 */
export function seenStats(
  cluster: Cluster,
  clock: Clock,
  daemons: Daemons,
  worker: ProxyWorker,
): ReadonlyMap<number, VmStats> {
  const current = cluster.loneStats.get(worker.node) ?? cluster.stats;
  if (daemons.cacheSeconds === 0) return current;
  const { stats } = worker;
  if (stats !== null && clock.since(stats.at) < daemons.cacheSeconds) return stats.values;
  const values = new Map(current);
  worker.stats = { at: clock.now(), values };
  return values;
}

/** Are the numbers of a node still shown? */
export function nodeStatsFresh(cluster: Cluster, node: string, clock: Clock): boolean {
  const at = cluster.nodes.get(node)?.statsAt ?? null;
  return at !== null && clock.since(at) <= STATS_LIFETIME_SECONDS;
}
