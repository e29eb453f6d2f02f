import { checkLock, isMember, requireVm, type Vm } from '../cluster.ts';
import {
  flag,
  integer,
  optionalText,
  startTask,
  text,
  underVmLock,
  vmPrivilege,
  type Call,
  type Core,
  type Endpoint,
} from '../core.ts';
import { dieWith, paramError } from '../errors.ts';
import { isHaManaged, requestHaMigration } from '../ha.ts';
import { migrateVm, localVolumes } from '../migration.ts';
import { common } from '../schema.ts';

export const migrateEndpoints: readonly Endpoint[] = [
  {
    method: 'GET',
    path: '/nodes/{node}/qemu/{vmid}/migrate',
    proxied: true,
    protected: true,
    check: vmPrivilege('VM.Migrate'),
    schema: { target: common.optionalString },
    handler: preconditions,
  },
  {
    method: 'POST',
    path: '/nodes/{node}/qemu/{vmid}/migrate',
    proxied: true,
    protected: true,
    check: vmPrivilege('VM.Migrate'),
    schema: {
      target: common.node,
      online: common.optionalBoolean,
      force: common.optionalBoolean,
      'with-local-disks': common.optionalBoolean,
      targetstorage: common.optionalString,
      bwlimit: common.optionalInteger,
      migration_type: common.optionalString,
      migration_network: common.optionalString,
      'with-conntrack-state': common.optionalBoolean,
    },
    handler: migrate,
  },
];

function preconditions({ core, node, params }: Call): unknown {
  const vm = requireVm(core.cluster, node, integer(params, 'vmid'));
  const target = optionalText(params, 'target');
  const others = [...core.cluster.nodes.values()]
    .filter((entry) => isMember(entry) && entry.name !== node)
    .map(({ name }) => name)
    .filter((name) => target === undefined || name === target);
  return {
    running: vm.running === null ? 0 : 1,
    allowed_nodes: others,
    not_allowed_nodes: Object.fromEntries(others.map((name) => [name, {}])),
    local_disks: localVolumes(core, vm).map(({ key, volume, volid, cdrom }) => ({
      volid,
      drivename: key,
      size: volume?.size ?? 0,
      cdrom: cdrom ? 1 : 0,
      is_attached: 1,
      is_cloudinit: 0,
      is_tpmstate: key === 'tpmstate0' ? 1 : 0,
      is_unused: key.startsWith('unused') ? 1 : 0,
      is_vmstate: 0,
      replicate: 1,
      shared: 0,
    })),
    local_resources: [],
    'mapped-resources': [],
    'mapped-resource-info': {},
    'has-dbus-vmstate': 1,
  };
}

function migrate(call: Call): string {
  const { core, node, params } = call;
  const vmid = integer(params, 'vmid');
  const target = text(params, 'target');
  if (target === node) throw paramError({ target: 'target is local node.' });
  for (const key of ['force', 'migration_type', 'migration_network']) {
    if (params[key] !== undefined) throw paramError({ [key]: 'Only root may use this option.' });
  }
  const vm = requireVm(core.cluster, node, vmid);
  checkTarget(core, target);
  if (isHaManaged(core, vmid)) return requestHaMigration(call, vmid, target);
  checkLock(vm);
  const online = flag(params, 'online') === true;
  if (vm.running !== null && !online) throw dieWith("can't migrate running VM without --online");
  const options = {
    target,
    withLocalDisks: flag(params, 'with-local-disks') === true,
    bwlimit: params['bwlimit'] === undefined ? null : integer(params, 'bwlimit'),
  };
  return startTask(call, 'qmigrate', vmid, (worker) =>
    underVmLock(call, vmid, worker, () => migrateLocked(core, node, vmid, options, worker)),
  );
}

function checkTarget(core: Core, target: string): void {
  const state = core.cluster.nodes.get(target);
  if (state === undefined || !isMember(state)) throw dieWith(`no such cluster node '${target}'`);
}

async function migrateLocked(
  core: Core,
  node: string,
  vmid: number,
  options: Parameters<typeof migrateVm>[2],
  worker: Parameters<typeof migrateVm>[3],
): Promise<void> {
  const vm: Vm = requireVm(core.cluster, node, vmid);
  checkLock(vm);
  await migrateVm(core, vm, options, worker);
}
