import { randomUUID } from 'node:crypto';
import { vmName, type Vm } from './cluster.ts';
import type { ClonePlan } from './clonePlan.ts';
import type { Call } from './core.ts';
import { dieWith } from './errors.ts';
import type { StorageFixture } from './fixture.ts';
import { inCloneSlot, underStorageLock } from './storageLocks.ts';
import type { Worker } from './tasks.ts';
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
} from './vmConfig.ts';
import { newImage, splitVolid, volidOf, type Volume } from './volumes.ts';

/** Phase B: after each disk the real config is written, still locked. */
export async function copyInto(
  call: Call,
  plan: ClonePlan,
  copy: Vm,
  created: Volume[],
  worker: Worker,
): Promise<void> {
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
  await worker.sleep(0.05);
}

/** Everything is inherited but identity: template flag, MACs, UUIDs (pve/README 19). */
function newConfig(plan: ClonePlan): Config {
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
  plan: ClonePlan,
  key: string,
  drive: Drive,
  created: Volume[],
  worker: Worker,
): Promise<Volume> {
  const { node } = call;
  const { storages } = call.core.cluster;
  const source = storages.lookup(drive.file, node);
  if (source === undefined) throw dieWith(`volume '${drive.file}' does not exist`);
  const linked = !plan.full && key !== 'tpmstate0';
  worker.log(`create ${linked ? 'linked' : 'full'} clone of drive ${key} (${drive.file})`);
  const storage = linked
    ? storages.get(source.storage)
    : (plan.storage ?? storages.get(source.storage));
  // Images are made under the storage's lock, data is copied outside of it (api-facts 3).
  return inCloneSlot(call, storage, worker, async () => {
    const volume = await underStorageLock(call, storage, worker, () =>
      allocate(call, plan, { source, storage, linked }, created, worker),
    );
    if (linked) return volume;
    worker.log(`allocated target volume '${volidOf(volume)}'`);
    await transfer(call, plan, source, storages.path(source), storages.path(volume), worker);
    return volume;
  });
}

async function allocate(
  call: Call,
  plan: ClonePlan,
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
  plan: ClonePlan,
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
