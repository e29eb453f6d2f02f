import { checkLock, requireVm, vmDigest, type Vm } from '../cluster.ts';
import {
  flag,
  integer,
  optionalText,
  startTask,
  text,
  underVmLock,
  vmPrivilege,
  type Call,
  type Endpoint,
} from '../core.ts';
import { dieWith, paramError } from '../errors.ts';
import { isHaManaged } from '../ha.ts';
import { common } from '../schema.ts';
import type { Worker } from '../tasks.ts';
import { volidOf, type Volume } from '../volumes.ts';
import {
  DISK_KEYS,
  drivesOf,
  isCdrom,
  parseDrive,
  parseSize,
  printDrive,
  printSize,
} from '../vmConfig.ts';

export const lifecycleEndpoints: readonly Endpoint[] = [
  {
    method: 'PUT',
    path: '/nodes/{node}/qemu/{vmid}/resize',
    proxied: true,
    protected: true,
    check: vmPrivilege('VM.Config.Disk'),
    schema: {
      disk: { type: 'string', enum: DISK_KEYS },
      size: { type: 'string', pattern: /^\+?\d+(\.\d+)?[KMGT]?$/ },
      digest: common.digest,
      skiplock: common.optionalBoolean,
    },
    handler: resize,
  },
  {
    method: 'DELETE',
    path: '/nodes/{node}/qemu/{vmid}',
    proxied: true,
    protected: true,
    check: vmPrivilege('VM.Allocate'),
    schema: {
      purge: common.optionalBoolean,
      'destroy-unreferenced-disks': common.optionalBoolean,
      skiplock: common.optionalBoolean,
    },
    handler: destroy,
  },
];

function resize(call: Call): string {
  const { core, node, params } = call;
  if (flag(params, 'skiplock') === true) {
    throw paramError({ skiplock: 'Only root may use this option.' });
  }
  const vmid = integer(params, 'vmid');
  return startTask(call, 'resize', vmid, (worker) =>
    underVmLock(call, vmid, worker, async () => {
      const vm = requireVm(core.cluster, node, vmid);
      const digest = optionalText(params, 'digest');
      if (digest !== undefined && digest !== vmDigest(vm)) {
        throw dieWith('checksum mismatch (file change by other user?)');
      }
      checkLock(vm);
      await grow(call, vm, worker);
    }),
  );
}

async function grow(call: Call, vm: Vm, worker: Worker): Promise<void> {
  const { core, node, params, who } = call;
  const disk = text(params, 'disk');
  const current = vm.config.get(disk);
  if (current === undefined) throw dieWith(`disk '${disk}' does not exist`);
  const drive = parseDrive(disk, current);
  if (isCdrom(drive)) throw dieWith("you can't resize a cdrom");
  const volume = core.cluster.storages.lookup(drive.file, node);
  if (volume === undefined) {
    throw dieWith(`Could not determine current size of volume '${drive.file}'`);
  }
  if (!core.access.has(who, `/storage/${volume.storage}`, 'Datastore.AllocateSpace')) {
    throw dieWith(
      `403 Permission check failed (/storage/${volume.storage}, Datastore.AllocateSpace)`,
    );
  }
  const wanted = text(params, 'size');
  const bytes = parseSize(wanted.replace(/^\+/, '')) ?? 0;
  // Compared with the real volume, not with the text in the config (api-facts 5.14).
  const size = wanted.startsWith('+') ? volume.size + bytes : bytes;
  if (size < volume.size) throw dieWith('shrinking disks is not supported');
  if (size === volume.size) return;
  await worker.sleep(core.times.resizeSeconds);
  volume.size = size;
  if (
    vm.running === null &&
    core.cluster.storages.isFileBased(core.cluster.storages.get(volume.storage))
  ) {
    worker.log('Image resized.');
  }
  if (core.cluster.nodes.get(node)?.quorum === false) {
    // The disk has grown all the same, so a retry with `+` grows it again (pve/cluster.md 25).
    throw dieWith(
      `unable to open file '/etc/pve/nodes/${node}/qemu-server/${vm.vmid}.conf.tmp.${worker.task.pid}' - Permission denied`,
    );
  }
  drive.options.set('size', printSize(size));
  vm.config.set(disk, printDrive(drive));
}

function destroy(call: Call): string {
  const { core, node, params } = call;
  const vmid = integer(params, 'vmid');
  if (flag(params, 'skiplock') === true) {
    throw paramError({ skiplock: 'Only root may use this option.' });
  }
  const purge = flag(params, 'purge') === true;
  const vm = requireVm(core.cluster, node, vmid);
  if (vm.config.get('protection') === '1') {
    throw dieWith(`can't remove VM ${vmid} - protection mode enabled`);
  }
  if (!purge && isHaManaged(core, vmid)) {
    throw dieWith(
      `unable to remove VM ${vmid} - used in HA resources and purge parameter not set.`,
    );
  }
  if (vm.running !== null) throw dieWith(`VM ${vmid} is running - destroy failed`);
  const unreferenced = flag(params, 'destroy-unreferenced-disks') === true;
  return startTask(call, 'qmdestroy', vmid, (worker) =>
    underVmLock(call, vmid, worker, async () => {
      const current = requireVm(core.cluster, node, vmid);
      checkLock(current, ['suspended']);
      if (current.running !== null) throw dieWith(`VM ${vmid} is running - destroy failed`);
      await remove(call, current, { purge, unreferenced }, worker);
    }),
  );
}

async function remove(
  call: Call,
  vm: Vm,
  options: { purge: boolean; unreferenced: boolean },
  worker: Worker,
): Promise<void> {
  const { core, node } = call;
  const storages = core.cluster.storages;
  const owned = drivesOf(vm.config)
    .filter(({ drive }) => !isCdrom(drive))
    .map(({ drive }) => storages.lookup(drive.file, node))
    .filter((volume) => volume !== undefined);
  for (const volume of owned) {
    const child = storages.volumes.find(
      (entry) => entry.storage === volume.storage && entry.base === volume.name,
    );
    if (child !== undefined) {
      throw dieWith(`base volume '${volidOf(volume)}' is still in use by linked cloned`);
    }
  }
  const quorate = core.cluster.nodes.get(node)?.quorum !== false;
  if (quorate) vm.config = new Map([['lock', 'destroyed']]);
  for (const volume of owned) {
    if (!quorate && storages.get(volume.storage).shared) {
      await waitForQuorum(volume, worker);
      continue;
    }
    if (volume.stuck === true) {
      worker.warn(`Could not remove disk '${volidOf(volume)}', check manually: unable to remove`);
      continue;
    }
    storages.remove(volume);
    if (!storages.isFileBased(storages.get(volume.storage))) {
      worker.log(`  Logical volume "${volume.name}" successfully removed.`);
    }
  }
  if (!quorate) {
    throw dieWith(
      `unable to open file '/etc/pve/nodes/${node}/qemu-server/${vm.vmid}.conf.tmp.${worker.task.pid}' - Permission denied`,
    );
  }
  if (options.unreferenced) {
    for (const volume of storages.volumes.filter(
      (entry) => entry.vmid === vm.vmid && (entry.node === null || entry.node === node),
    )) {
      if (volume.stuck === true)
        worker.warn(`Could not remove unreferenced disk '${volidOf(volume)}'`);
      else storages.remove(volume);
    }
  }
  await worker.sleep(core.times.destroySeconds);
  core.access.removePath(`/vms/${vm.vmid}`);
  for (const pool of core.cluster.pools) {
    pool.members = pool.members.filter((member) => member !== `qemu/${vm.vmid}`);
  }
  if (options.purge) {
    worker.log(`purging VM ${vm.vmid} from related configurations..`);
    if (core.cluster.ha.resources.delete(vm.vmid)) {
      core.cluster.ha.deleting.add(vm.vmid);
      worker.log(`NOTE: removed VM ${vm.vmid} from HA resource configuration.`);
    }
  }
  core.cluster.vms.delete(vm.vmid);
}

/** The cluster-wide lock of a shared storage cannot be had (30-noquorum-destroy-at-pve1-task-log). */
async function waitForQuorum(volume: Volume, worker: Worker): Promise<void> {
  for (let attempt = 0; attempt < 9; attempt += 1) {
    worker.log(`trying to acquire cfs lock 'storage-${volume.storage}' ...`);
    await worker.sleep(1);
  }
  worker.warn(
    `Could not remove disk '${volidOf(volume)}', check manually: cfs-lock 'storage-${volume.storage}' error: no quorum!`,
  );
}
