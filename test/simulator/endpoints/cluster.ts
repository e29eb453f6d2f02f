import { isMember, isOnline, NOTICE_SECONDS, type NodeState } from '../cluster.ts';
import { integer, optionalText, type Call, type Core, type Endpoint } from '../core.ts';
import { dieWith, paramError } from '../errors.ts';
import { formats } from '../schema.ts';
import type { Task } from '../tasks.ts';
import { nodeStatsFresh, resourceRow, seenStats } from '../stats.ts';

export const clusterEndpoints: readonly Endpoint[] = [
  {
    method: 'GET',
    path: '/cluster/resources',
    schema: { type: { type: 'string', optional: true, enum: ['vm', 'storage', 'node', 'sdn'] } },
    handler: (call) => resources(call, optionalText(call.params, 'type')),
  },
  {
    method: 'GET',
    path: '/cluster/status',
    protected: true,
    schema: {},
    check: ({ core, who }) => {
      core.access.require(who, '/', 'Sys.Audit');
    },
    handler: (call) => clusterStatus(call),
  },
  {
    method: 'GET',
    path: '/cluster/nextid',
    schema: { vmid: { type: 'integer', optional: true, format: formats.vmid } },
    handler: ({ core, params }) => {
      if (params['vmid'] !== undefined) {
        const vmid = integer(params, 'vmid');
        if (core.cluster.vms.has(vmid)) throw paramError({ vmid: `VM ${vmid} already exists` });
        return String(vmid);
      }
      for (let vmid = 100; vmid < 1_000_000; vmid += 1) {
        if (!core.cluster.vms.has(vmid)) return String(vmid);
      }
      throw dieWith('unable to get any free VMID in range [100, 1000000]');
    },
  },
  { method: 'GET', path: '/cluster/tasks', schema: {}, handler: clusterTasks },
];

function resources(call: Call, type: string | undefined): unknown[] {
  const { core, who } = call;
  const rows: unknown[] = [];
  if (type === undefined || type === 'vm') {
    const known = core.cluster.frozenGuests.get(call.entryNode);
    const stats = seenStats(core.cluster, core.clock, core.daemons, call.worker);
    for (const vm of [...core.cluster.vms.values()].sort((a, b) => a.vmid - b.vmid)) {
      if (!core.access.has(who, `/vms/${vm.vmid}`, 'VM.Audit')) continue;
      if (known?.has(vm.vmid) === false) continue;
      rows.push(resourceRow(core.cluster, vm, core.clock, stats));
    }
  }
  if (type === undefined || type === 'node') {
    for (const node of members(core)) rows.push(nodeRow(call, node, true));
  }
  if (type === undefined || type === 'storage') {
    for (const storage of core.cluster.storages.all) {
      if (!core.access.has(who, `/storage/${storage.id}`, 'Datastore.Audit')) continue;
      for (const node of members(core)) {
        if (!core.cluster.storages.enabledOn(storage, node.name)) continue;
        rows.push({
          id: `storage/${node.name}/${storage.id}`,
          storage: storage.id,
          node: node.name,
          type: 'storage',
          plugintype: storage.type,
          content: storage.content.join(','),
          shared: storage.shared ? 1 : 0,
          ...storageNumbers(core, storage.mounted, storage.id, node),
        });
      }
    }
  }
  return rows;
}

function storageNumbers(
  core: Core,
  mounted: boolean,
  id: string,
  node: NodeState,
): Record<string, unknown> {
  if (!mounted || !nodeStatsFresh(core.cluster, node.name, core.clock)) {
    return { status: 'unknown' };
  }
  const storage = core.cluster.storages.get(id);
  return {
    status: 'available',
    disk: core.cluster.storages.usedBytes(storage, node.name),
    maxdisk: storage.totalBytes,
  };
}

function members(core: Core): NodeState[] {
  return [...core.cluster.nodes.values()].filter(isMember);
}

/** A node as `cluster/resources` or `GET /nodes` shows it, from the point of view of the entry node. */
export function nodeRow(
  call: Call,
  node: NodeState,
  inResources: boolean,
): Record<string, unknown> {
  const { core, who } = call;
  const fresh = nodeStatsFresh(core.cluster, node.name, core.clock);
  const online = seenOnline(call, node);
  const row: Record<string, unknown> = {
    id: `node/${node.name}`,
    node: node.name,
    type: 'node',
    status: online ? (fresh ? 'online' : 'unknown') : 'offline',
  };
  if (fresh) {
    row['level'] = '';
    if (inResources) row['cgroup-mode'] = 2;
  }
  if (!inResources) row['ssl_fingerprint'] = fingerprint(node.name);
  if (!fresh || !core.access.has(who, `/nodes/${node.name}`, 'Sys.Audit')) return row;
  Object.assign(row, { maxcpu: node.cpus, maxmem: node.memoryBytes, maxdisk: 270_553_174_016 });
  if (online) {
    Object.assign(row, {
      cpu: 0.05,
      mem: 2_400_000_000,
      disk: 29_850_013_696,
      uptime: Math.floor(core.clock.since(node.bootedAt)),
    });
  }
  return row;
}

/** Each side of a lost quorum sees the other one offline (pve/cluster.md 26). */
function seenOnline(call: Call, node: NodeState): boolean {
  if (node.name === call.entryNode) return true;
  const { core } = call;
  const entry = core.cluster.nodes.get(call.entryNode);
  if (entry?.quorum === false) return core.clock.since(entry.changedAt) <= NOTICE_SECONDS;
  if (!node.quorum && core.clock.since(node.changedAt) > NOTICE_SECONDS) return false;
  return isOnline(node, core.clock);
}

function fingerprint(name: string): string {
  const bytes = Array.from({ length: 32 }, (_unused, index) =>
    (((name.charCodeAt(index % name.length) || 7) * (index + 3)) % 256)
      .toString(16)
      .padStart(2, '0')
      .toUpperCase(),
  );
  return bytes.join(':');
}

function clusterStatus(call: Call): unknown[] {
  const { core, entryNode } = call;
  const all = members(core);
  const rows: unknown[] = [];
  if (all.length > 1) {
    const entry = core.cluster.nodes.get(entryNode);
    const quorate =
      entry?.quorum === true || core.clock.since(entry?.changedAt ?? 0) <= NOTICE_SECONDS;
    rows.push({
      id: 'cluster',
      type: 'cluster',
      name: core.cluster.name,
      nodes: all.length,
      version: all.length,
      quorate: quorate ? 1 : 0,
    });
  }
  for (const [index, node] of all.entries()) {
    rows.push({
      id: `node/${node.name}`,
      type: 'node',
      name: node.name,
      ip: node.ip,
      level: '',
      local: node.name === entryNode ? 1 : 0,
      nodeid: all.length > 1 ? index + 1 : 0,
      online: seenOnline(call, node) ? 1 : 0,
    });
  }
  return rows;
}

/** Without Sys.Audit on / a token sees nothing, not even its own (api-facts 2.5). */
function clusterTasks({ core, who }: Call): unknown[] {
  if (!core.access.has(who, '/', 'Sys.Audit')) return [];
  const rows: unknown[] = [];
  for (const node of core.cluster.nodes.keys()) {
    const isGone = core.cluster.nodes.get(node)?.state === 'dead';
    const runs = (task: Task): boolean => task.running || (isGone && task.cutOff === true);
    const own = core.tasks.all.filter((task) => task.node === node && !task.vanished);
    const running = own.filter(runs);
    const finished = own.filter((task) => !runs(task)).slice(Math.min(-1, running.length - 25));
    for (const task of [...running, ...finished].toReversed()) {
      const [user = '', tokenid] = task.authId.split('!');
      rows.push({
        upid: task.upid,
        node,
        type: task.type,
        id: task.id,
        user,
        ...(tokenid === undefined ? {} : { tokenid }),
        starttime: task.starttime,
        ...(runs(task)
          ? { saved: '0', pid: task.pid }
          : { saved: '1', endtime: task.endtime, status: task.exitstatus }),
      });
    }
  }
  return rows;
}
