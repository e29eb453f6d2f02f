import { randomUUID } from 'node:crypto';
import { checkLock, isMember, isTemplate, newVm, vmName, vmOn, type Vm } from '../cluster.ts';
import {
  flag,
  integer,
  optionalText,
  startTask,
  underVmLock,
  type Call,
  type Check,
  type Endpoint,
} from '../core.ts';
import { dieWith, forbidden, noConfigFound, paramError, textOf } from '../errors.ts';
import type { StorageFixture } from '../fixture.ts';
import { common, formats, type Schema } from '../schema.ts';
import type { Worker } from '../tasks.ts';
import { newImage, splitVolid, volidOf, type Volume } from '../volumes.ts';
import {
  drivesOf,
  isCdrom,
  newSmbios,
  parseNic,
  printDrive,
  printNic,
  printSize,
  randomMac,
  type Config,
  type Drive,
} from '../vmConfig.ts';
import { requireQuorum } from './power.ts';
import { checkBridge } from './vmConfigWrite.ts';

/** A clone waits only this long for the locks of source and copy (11-race-clone-same-newid-full). */
const CLONE_LOCK_SECONDS = 1;

const SCHEMA: Schema = {
  newid: { type: 'integer', format: formats.vmid },
  name: { type: 'string', optional: true, format: formats.dnsName },
  description: common.optionalString,
  pool: common.optionalString,
  snapname: { type: 'string', optional: true, maxLength: 40 },
  storage: common.optionalStorage,
  format: { type: 'string', optional: true, enum: ['raw', 'qcow2', 'vmdk'] },
  full: common.optionalBoolean,
  target: { type: 'string', optional: true, format: formats.node },
  bwlimit: common.optionalInteger,
};

export const cloneEndpoints: readonly Endpoint[] = [
  {
    method: 'POST',
    path: '/nodes/{node}/qemu/{vmid}/clone',
    proxied: true,
    protected: true,
    schema: SCHEMA,
    check: mayClone,
    handler: clone,
  },
];

function mayClone({ core, who, raw }: Check): void {
  core.access.require(who, `/vms/${String(raw['vmid'])}`, 'VM.Clone');
  const pool = raw['pool'];
  if (pool !== undefined) {
    if (!core.cluster.pools.some((entry) => entry.id === pool)) {
      throw forbidden(`pool '${String(pool)}' does not exist`);
    }
    if (core.access.has(who, `/pool/${String(pool)}`, 'VM.Allocate')) return;
  }
  const newid = raw['newid'] === undefined ? '-' : String(raw['newid']);
  // An `or` group that fails names neither path nor privilege (04-clone-no-vm-allocate).
  if (!core.access.has(who, `/vms/${newid}`, 'VM.Allocate')) throw forbidden();
}

interface Plan {
  source: Vm;
  newid: number;
  full: boolean;
  target: string | null;
  storage: StorageFixture | null;
  format: 'qcow2' | 'raw' | null;
  bwlimit: number | null;
  name: string | undefined;
  description: string | undefined;
  pool: string | undefined;
}

function clone(call: Call): string {
  const { params } = call;
  requireQuorum(call);
  const plan = check(call);
  return startTask(call, 'qmclone', integer(params, 'vmid'), (worker) => run(call, plan, worker), {
    vmName: plan.name ?? '',
  });
}

/** The early checks; they run again in the worker (api-facts 5.13). */
function check(call: Call): Plan {
  const { core, node, params } = call;
  const vmid = integer(params, 'vmid');
  const newid = integer(params, 'newid');
  const wantedTarget = optionalText(params, 'target');
  const target = wantedTarget === undefined || wantedTarget === node ? null : wantedTarget;
  if (target !== null) {
    const state = core.cluster.nodes.get(target);
    if (state === undefined || !isMember(state)) throw dieWith(`no such cluster node '${target}'`);
  }
  const storageId = optionalText(params, 'storage');
  const storage = storageId === undefined ? null : checkTargetStorage(call, storageId, target);
  const source = vmOn(core.cluster, node, vmid);
  if (source === undefined) throw noConfigFound(node, vmid);
  checkLock(source);
  const full = flag(params, 'full') ?? !isTemplate(source);
  if (!full && storageId !== undefined) {
    throw dieWith("parameter 'storage' not allowed for linked clones");
  }
  const format = optionalText(params, 'format');
  if (!full && format !== undefined) {
    throw dieWith("parameter 'format' not allowed for linked clones");
  }
  checkStorages(call, source, storage, target);
  for (const [key, value] of source.config) if (/^net\d+$/.test(key)) checkBridge(call, key, value);
  const taken = core.cluster.vms.get(newid);
  if (taken !== undefined && taken.node === node && taken.type === 'qemu') {
    throw dieWith(`unable to create VM ${newid}: config file already exists`);
  }
  return {
    source,
    newid,
    full,
    target,
    storage,
    format: format === 'qcow2' || format === 'raw' ? format : null,
    bwlimit: params['bwlimit'] === undefined ? null : integer(params, 'bwlimit'),
    name: optionalText(params, 'name'),
    description: optionalText(params, 'description'),
    pool: optionalText(params, 'pool'),
  };
}

function checkTargetStorage(call: Call, id: string, target: string | null): StorageFixture {
  const storage = call.core.cluster.storages.check(id, call.node);
  if (!storage.content.includes('images')) {
    throw paramError({ storage: `storage '${id}' does not support vm images` });
  }
  if (target !== null) {
    call.core.cluster.storages.check(id, target);
    if (!storage.shared) throw dieWith(`can't clone to non-shared storage '${id}'`);
  }
  return storage;
}

function checkStorages(
  call: Call,
  source: Vm,
  storage: StorageFixture | null,
  target: string | null,
): void {
  let shared = true;
  for (const { drive } of drivesOf(source.config)) {
    const split = splitVolid(drive.file);
    if (split === null) continue;
    const own = call.core.cluster.storages.find(split.storage);
    if (own === undefined) throw dieWith(`storage '${split.storage}' does not exist`);
    if (!own.shared) shared = false;
    if (isCdrom(drive)) continue;
    call.core.access.require(
      call.who,
      `/storage/${storage?.id ?? split.storage}`,
      'Datastore.AllocateSpace',
    );
  }
  if (target !== null && !shared) {
    throw dieWith(`can't clone VM to node '${target}' (VM uses local storage)`);
  }
}

async function run(call: Call, plan: Plan, worker: Worker): Promise<void> {
  const { core } = call;
  const { vmid } = plan.source;
  const shared = plan.source.running === null;
  await underVmLock(
    call,
    vmid,
    worker,
    () =>
      underVmLock(
        call,
        plan.newid,
        worker,
        async () => {
          const copy = createPlaceholder(call, plan, worker);
          const created: Volume[] = [];
          try {
            await copyInto(call, plan, copy, created, worker);
          } catch (error) {
            for (const volume of created) core.cluster.storages.remove(volume);
            core.cluster.vms.delete(plan.newid);
            throw dieWith(`clone failed: ${textOf(error)}`);
          }
          copy.config.delete('lock');
          if (plan.target !== null) {
            await worker.sleep(0.1);
            copy.node = plan.target;
          }
          core.cluster.pools
            .find((pool) => pool.id === plan.pool)
            ?.members.push(`qemu/${plan.newid}`);
        },
        { timeoutSeconds: CLONE_LOCK_SECONDS },
      ),
    { shared, timeoutSeconds: CLONE_LOCK_SECONDS },
  );
}

/** Phase A: from here on the VMID is taken in the whole cluster (pve/README 15, 17). */
function createPlaceholder(call: Call, plan: Plan, worker: Worker): Vm {
  const { core, node } = call;
  const { newid } = plan;
  const taken = core.cluster.vms.get(newid);
  if (taken !== undefined && taken.node === node && taken.type === 'qemu') {
    throw dieWith(`unable to create VM ${newid}: config file already exists`);
  }
  worker.log(`creating a clone of VM ${plan.source.vmid} with ID ${newid}`);
  if (taken !== undefined) {
    throw dieWith(
      `close (rename) atomic file '/etc/pve/nodes/${node}/qemu-server/${newid}.conf' failed: File exists`,
    );
  }
  const placeholder: Config = new Map([
    ['description', ' qmclone temporary file'],
    ['lock', 'clone'],
  ]);
  const copy = newVm(newid, 'qemu', node, placeholder);
  core.cluster.vms.set(newid, copy);
  return copy;
}

/** Phase B: after each disk the real config is written, still locked. */
async function copyInto(
  call: Call,
  plan: Plan,
  copy: Vm,
  created: Volume[],
  worker: Worker,
): Promise<void> {
  const { core } = call;
  const config = newConfig(plan);
  const drives = drivesOf(plan.source.config).filter(({ key }) => !key.startsWith('unused'));
  let copied = 0;
  for (const { key, drive } of drives) {
    if (splitVolid(drive.file) === null || isCdrom(drive)) {
      config.set(key, printDrive(drive));
      continue;
    }
    const volume = await copyDisk(call, plan, key, drive, created, worker);
    const options = new Map(drive.options);
    options.set('size', printSize(volume.size));
    config.set(key, printDrive({ file: volidOf(volume), options }));
    copied += 1;
    copy.config = new Map([...config, ['lock', 'clone']]);
  }
  if (copied === 0) copy.config = new Map([...config, ['lock', 'clone']]);
  await core.clock.sleep(0.05);
}

/** Everything is inherited but identity: template flag, MACs, UUIDs (pve/README 19). */
function newConfig(plan: Plan): Config {
  const { source } = plan;
  const config: Config = new Map();
  for (const [key, value] of source.config) {
    if (/^(template|lock|parent|vmstate|unused\d+|digest)$/.test(key)) continue;
    if (/^net\d+$/.test(key)) {
      config.set(key, printNic({ ...parseNic(key, value), mac: randomMac() }));
    } else config.set(key, value);
  }
  if (config.has('smbios1')) config.set('smbios1', newSmbios(config.get('smbios1')));
  if (config.has('vmgenid')) config.set('vmgenid', randomUUID());
  config.set('name', plan.name ?? `Copy-of-VM-${vmName(source).replace(/^VM /, '')}`);
  const description = plan.description?.replace(/\s+$/, '');
  if (description !== undefined && description !== '') config.set('description', description);
  return config;
}

async function copyDisk(
  call: Call,
  plan: Plan,
  key: string,
  drive: Drive,
  created: Volume[],
  worker: Worker,
): Promise<Volume> {
  const { core, node } = call;
  const storages = core.cluster.storages;
  const source = storages.lookup(drive.file, node);
  if (source === undefined) throw dieWith(`volume '${drive.file}' does not exist`);
  const linked = !plan.full && key !== 'tpmstate0';
  worker.log(`create ${linked ? 'linked' : 'full'} clone of drive ${key} (${drive.file})`);
  const storage = linked
    ? storages.get(source.storage)
    : (plan.storage ?? storages.get(source.storage));
  // Images are made under the storage's lock, data is copied outside of it (api-facts 3).
  const volume = await core.locks(node).withLock(
    {
      path: `/var/lock/pve-manager/pve-storage-${storage.id}`,
      timeoutSeconds: core.times.lockWaitSeconds,
      owner: worker,
    },
    () => allocate(call, plan, { source, storage, linked }, created, worker),
  );
  if (linked) return volume;
  worker.log(`allocated target volume '${volidOf(volume)}'`);
  await transfer(call, plan, source, storages.path(source), storages.path(volume), worker);
  return volume;
}

async function allocate(
  call: Call,
  plan: Plan,
  disk: { source: Volume; storage: StorageFixture; linked: boolean },
  created: Volume[],
  worker: Worker,
): Promise<Volume> {
  const { core, node } = call;
  const storages = core.cluster.storages;
  const { source, storage, linked } = disk;
  const volume = newImage(storages, {
    storage,
    node,
    vmid: plan.newid,
    size: source.size,
    used: linked ? 528_384 : source.used,
    format: plan.format ?? (source.format === 'raw' ? 'raw' : 'qcow2'),
    base: linked ? source.name : null,
    now: core.clock.now(),
  });
  storages.add(volume);
  created.push(volume);
  const file = volume.name.replace(/^.*\//, '');
  if (storages.isFileBased(storage)) {
    if (linked) {
      worker.log(
        `clone ${source.name}: images, ${file}, ${plan.newid} to ${file} (base=../${source.name})`,
      );
    }
    const layout = linked
      ? `cluster_size=131072 extended_l2=on preallocation=metadata compression_type=zlib size=${source.size} backing_file=../${source.name} backing_fmt=${source.format}`
      : `cluster_size=65536 extended_l2=off preallocation=metadata compression_type=zlib size=${source.size}`;
    worker.log(
      `Formatting '${storages.path(volume)}', fmt=${volume.format} ${layout} lazy_refcounts=off refcount_bits=16`,
    );
  } else {
    worker.log(`  Logical volume "${file}" created.`);
  }
  if (linked) await worker.sleep(core.times.linkedCloneSeconds);
  return volume;
}

/** qemu-img's progress: one line every four of thirty-one parts (10-task-log-full-clone). */
async function transfer(
  call: Call,
  plan: Plan,
  source: Volume,
  from: string,
  to: string,
  worker: Worker,
): Promise<void> {
  const { times } = call.core;
  const seconds =
    plan.bwlimit === null || plan.bwlimit === 0
      ? (source.used / 1024 ** 3) * times.cloneSecondsPerGiB
      : source.used / 1024 / plan.bwlimit;
  try {
    // Under a rate limit qemu-img reads ahead: all lines but the last come at once (10-task-log-running).
    const limited = plan.bwlimit !== null && plan.bwlimit > 0;
    for (let part = 0; part <= 28; part += 4) {
      worker.log(progress(source.size, part / 31));
      if (!limited) await worker.sleep(seconds / 8);
    }
    worker.log(progress(source.size, 1));
    if (limited) await worker.sleep(seconds);
  } catch {
    const limit = plan.bwlimit === null ? '' : ` -r ${plan.bwlimit}K`;
    throw new Error(
      `copy failed: command '/usr/bin/qemu-img convert -p -n${limit} -f ${source.format} -O ${source.format} ${from} zeroinit:${to}' failed: interrupted by signal`,
    );
  }
  worker.log(progress(source.size, 1));
}

function progress(size: number, part: number): string {
  return `transferred ${human(size * part)} of ${human(size)} (${(part * 100).toFixed(2)}%)`;
}

function human(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value.toFixed(1)} ${units[unit] ?? ''}`;
}
