import type { Vm } from './cluster.ts';
import type { Core } from './core.ts';
import { dieWith } from './errors.ts';
import type { Worker } from './tasks.ts';
import { splitVolid, volidOf, type Volume } from './volumes.ts';
import { drivesOf, isCdrom } from './vmConfig.ts';

export interface LocalVolume {
  key: string;
  volid: string;
  cdrom: boolean;
  volume: Volume | undefined;
}

/** Volumes of a VM that other nodes do not have (30-migrate-preconditions-*). */
export function localVolumes(core: Core, vm: Vm): LocalVolume[] {
  return drivesOf(vm.config)
    .filter(({ drive }) => {
      const split = splitVolid(drive.file);
      return split !== null && core.cluster.storages.find(split.storage)?.shared !== true;
    })
    .map(({ key, drive }) => ({
      key,
      volid: drive.file,
      cdrom: isCdrom(drive),
      volume: core.cluster.storages.lookup(drive.file, vm.node),
    }));
}

export interface MigrateOptions {
  target: string;
  withLocalDisks: boolean;
  /** KiB/s, `null` = unlimited. */
  bwlimit: number | null;
}

/** A migration as PVE::QemuMigrate carries it out and logs it; ends with `migration aborted` when it cannot. */
export async function migrateVm(
  core: Core,
  vm: Vm,
  options: MigrateOptions,
  worker: Worker,
): Promise<void> {
  const started = core.clock.now();
  const log = (line: string): void => {
    worker.log(`${timestamp(core)} ${line}`);
  };
  const abort = (reason: string): Error => {
    const seconds = Math.floor(core.clock.since(started));
    log(`ERROR: migration aborted (duration ${duration(seconds)}): ${reason}`);
    return dieWith('migration aborted');
  };
  const target = core.cluster.nodes.get(options.target);
  const online = vm.running !== null;
  if (target === undefined || target.state === 'dead' || target.state === 'cut') {
    const ssh = `/usr/bin/ssh -e none -o 'BatchMode=yes' -o 'HostKeyAlias=${options.target}' -o 'UserKnownHostsFile=/etc/pve/nodes/${options.target}/ssh_known_hosts' -o 'GlobalKnownHostsFile=none' root@${target?.ip ?? ''} /bin/true`;
    await worker.sleep(core.times.deadNodeSeconds);
    log(`# ${ssh}`);
    log(`ssh: connect to host ${target?.ip ?? ''} port 22: No route to host`);
    throw abort("Can't connect to destination address using public key");
  }
  if (online) {
    log(
      'conntrack state migration not supported or disabled, active connections might get dropped',
    );
  }
  log(`starting migration of VM ${vm.vmid} to node '${options.target}' (${target.ip})`);
  const local = localVolumes(core, vm);
  for (const { volid } of local) log(`found local disk '${volid}' (attached)`);
  const problem = scanProblem(local, online, options, log);
  if (problem !== null) {
    const reason = `Problem found while scanning volumes - ${problem}`;
    log(`ERROR: ${reason}`);
    log('aborting phase 1 - cleanup resources');
    throw abort(reason);
  }
  vm.config.set('lock', 'migrate');
  try {
    if (local.length > 0) await copyDisks(core, local, options, worker, log);
    if (online) await moveRunning(core, vm, options, worker, log);
    else await worker.sleep(0.2);
  } catch (error) {
    vm.config.delete('lock');
    throw error;
  }
  vm.node = options.target;
  // The locked config is seen under the target for a while (pve/cluster.md 19).
  await worker.sleep(online ? 3.5 : 1);
  vm.config.delete('lock');
  const seconds = Math.floor(core.clock.since(started));
  log(`migration finished successfully (duration ${duration(seconds)})`);
}

function scanProblem(
  local: readonly LocalVolume[],
  online: boolean,
  options: MigrateOptions,
  log: (line: string) => void,
): string | null {
  let failed = false;
  for (const { volid, cdrom, volume } of local) {
    if (!cdrom && volume?.base !== null && volume?.base !== undefined) {
      const base = volume.base.replace(/^.*\//, '');
      return `can't migrate '${volid}' as it's a clone of '${base}' at /usr/share/perl5/PVE/QemuMigrate.pm line 586.`;
    }
    if (online && !options.withLocalDisks) {
      log(
        `can't migrate local disk '${volid}': can't live migrate attached local disks without with-local-disks option`,
      );
      failed = true;
    } else if (cdrom) {
      log(`can't migrate local disk '${volid}': local cdrom image`);
      failed = true;
    }
  }
  return failed ? "can't migrate VM - check log" : null;
}

async function copyDisks(
  core: Core,
  local: readonly LocalVolume[],
  options: MigrateOptions,
  worker: Worker,
  log: (line: string) => void,
): Promise<void> {
  log('copying local disk images');
  for (const { volid, volume } of local) {
    if (volume === undefined) throw dieWith(`volume '${volid}' does not exist`);
    const path = core.cluster.storages.path(volume);
    log(
      `Formatting '${path}', fmt=${volume.format} cluster_size=65536 extended_l2=off preallocation=metadata compression_type=zlib size=${volume.size} lazy_refcounts=off refcount_bits=16`,
    );
    await worker.sleep((volume.size / 1024 ** 3) * core.times.cloneSecondsPerGiB + 2);
    log(`successfully imported '${volidOf(volume)}'`);
    log(`volume '${volid}' is '${volid}' on the target`);
    volume.node = options.target;
  }
}

async function moveRunning(
  core: Core,
  vm: Vm,
  options: MigrateOptions,
  worker: Worker,
  log: (line: string) => void,
): Promise<void> {
  log(`starting VM ${vm.vmid} on remote node '${options.target}'`);
  core.tasks.start(
    { node: options.target, type: 'qmstart', id: String(vm.vmid), authId: 'root@pam' },
    (starting) => starting.sleep(1.5),
  );
  await worker.sleep(2.5);
  log('start remote tunnel');
  await worker.sleep(0.8);
  log('ssh tunnel ver 1');
  log(`starting online/live migration on unix:/run/qemu-server/${vm.vmid}.migrate`);
  log('set migration capabilities');
  if (options.bwlimit !== null && options.bwlimit > 0) {
    log(`migration speed limit: ${(options.bwlimit / 1024).toFixed(1)} MiB/s`);
  }
  log('migration downtime limit: 100 ms');
  log('migration cachesize: 32.0 MiB');
  log('set migration parameters');
  log(`start migrate command to unix:/run/qemu-server/${vm.vmid}.migrate`);
  const megabytes = Number.parseInt(vm.config.get('memory') ?? '512', 10) * 0.4;
  const speed = options.bwlimit === null || options.bwlimit === 0 ? 270 : options.bwlimit / 820;
  for (let done = speed; done < megabytes; done += speed) {
    await worker.sleep(1);
    log(
      `migration active, transferred ${done.toFixed(1)} MiB of ${megabytes.toFixed(1)} MiB VM-state, ${speed.toFixed(1)} MiB/s`,
    );
  }
  await worker.sleep(1);
  if (vm.running === null) throw dieWith(`VM ${vm.vmid} not running`);
  vm.running.qmpstatus = 'postmigrate';
  log(`average migration speed: ${speed.toFixed(1)} MiB/s - downtime 21 ms`);
  log(`migration completed, transferred ${megabytes.toFixed(1)} MiB VM-state`);
  log('migration status: completed');
  await worker.sleep(0.2);
  vm.running.qmpstatus = 'running';
}

function timestamp(core: Core): string {
  return new Date(core.clock.now()).toISOString().slice(0, 19).replace('T', ' ');
}

function duration(seconds: number): string {
  const part = (value: number): string => String(value).padStart(2, '0');
  return `${part(Math.floor(seconds / 3600))}:${part(Math.floor(seconds / 60) % 60)}:${part(seconds % 60)}`;
}
