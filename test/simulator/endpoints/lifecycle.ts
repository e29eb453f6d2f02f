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
import { dieWith, paramError, textOf } from '../errors.ts';
import { isHaManaged } from '../ha.ts';
import { common } from '../schema.ts';
import { underClusterLock, underStorageLock } from '../storageLocks.ts';
import type { Worker } from '../tasks.ts';
import { allocatedSize, volidOf, type Volume } from '../volumes.ts';
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
  volume.size = allocatedSize(core.cluster.storages.get(volume.storage), size);
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

interface Removal {
  purge: boolean;
  unreferenced: boolean;
}

/** Disks, then the traces in the files of the cluster, then the config itself (api-facts 5.21). */
async function remove(call: Call, vm: Vm, options: Removal, worker: Worker): Promise<void> {
  const { core, node } = call;
  const owned = ownedVolumes(call, vm);
  const quorate = core.cluster.nodes.get(node)?.quorum !== false;
  if (quorate) vm.config = new Map([['lock', 'destroyed']]);
  for (const volume of owned) await free(call, volume, '', worker);
  if (!quorate) {
    throw dieWith(
      `unable to open file '/etc/pve/nodes/${node}/qemu-server/${vm.vmid}.conf.tmp.${worker.task.pid}' - Permission denied`,
    );
  }
  if (options.unreferenced) await freeUnreferenced(call, vm.vmid, worker);
  await worker.sleep(core.times.destroySeconds);
  await removeAccess(call, vm.vmid, worker);
  if (options.purge) await purgeTraces(call, vm.vmid, worker);
  core.cluster.vms.delete(vm.vmid);
}

/** Throws when a linked clone still needs one of them. */
function ownedVolumes(call: Call, vm: Vm): Volume[] {
  const { storages } = call.core.cluster;
  const owned = [...drivesOf(vm.config), ...drivesOf(vm.pending)]
    .filter(({ drive }) => !isCdrom(drive))
    .map(({ drive }) => storages.lookup(drive.file, call.node))
    .filter((volume) => volume !== undefined);
  for (const volume of owned) {
    const child = storages.volumes.find(
      (entry) => entry.storage === volume.storage && entry.base === volume.name,
    );
    if (child !== undefined) {
      throw dieWith(`base volume '${volidOf(volume)}' is still in use by linked cloned`);
    }
  }
  return owned;
}

/** What cannot be freed is only warned about: the disk is leaked. */
async function free(call: Call, volume: Volume, kind: string, worker: Worker): Promise<void> {
  const { storages } = call.core.cluster;
  const storage = storages.get(volume.storage);
  try {
    await underStorageLock(call, storage, worker, async () => {
      if (volume.stuck === true) throw dieWith('unable to remove');
      storages.remove(volume);
      await Promise.resolve();
    });
    if (!storages.isFileBased(storage)) {
      worker.log(`  Logical volume "${volume.name}" successfully removed.`);
    }
  } catch (error) {
    worker.warn(
      `Could not remove ${kind}disk '${volidOf(volume)}', check manually: ${textOf(error)}`,
    );
  }
}

/** Looks through every enabled storage for images of this VMID; one that is offline ends the task. */
async function freeUnreferenced(call: Call, vmid: number, worker: Worker): Promise<void> {
  const { storages } = call.core.cluster;
  const visible = storages.all.filter(
    (storage) => storage.content.includes('images') && storages.enabledOn(storage, call.node),
  );
  for (const storage of visible) {
    await worker.sleep(storage.slowSeconds ?? 0);
    storages.activate(storage.id, call.node);
    for (const volume of storages.list(storage.id, call.node)) {
      if (volume.vmid === vmid) await free(call, volume, 'unreferenced ', worker);
    }
  }
}

/** ACLs and membership in pools; a lock that cannot be had leaves the VM `destroyed` (api-facts 5.21). */
async function removeAccess(call: Call, vmid: number, worker: Worker): Promise<void> {
  const { core } = call;
  try {
    await underClusterLock(call, 'file-user_cfg', worker, async () => {
      core.access.removePath(`/vms/${vmid}`);
      for (const pool of core.cluster.pools) {
        pool.members = pool.members.filter((member) => member !== `qemu/${vmid}`);
      }
      await Promise.resolve();
    });
  } catch (error) {
    throw dieWith(`access permissions cleanup for VM ${vmid} failed: ${textOf(error)}`);
  }
}

async function purgeTraces(call: Call, vmid: number, worker: Worker): Promise<void> {
  const { ha } = call.core.cluster;
  worker.log(`purging VM ${vmid} from related configurations..`);
  for (const lock of ['file-replication_cfg', 'file-jobs_cfg']) {
    await underClusterLock(call, lock, worker, () => Promise.resolve());
  }
  await underClusterLock(call, 'domain-ha', worker, async () => {
    if (!ha.resources.delete(vmid)) return;
    ha.deleting.add(vmid);
    worker.log(`NOTE: removed VM ${vmid} from HA resource configuration.`);
    await Promise.resolve();
  });
}
