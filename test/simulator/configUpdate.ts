import { applyPending, checkLock, requireVm, vmDigest, type Vm } from './cluster.ts';
import type { Call } from './core.ts';
import { dieWith } from './errors.ts';
import {
  bootOrder,
  isCdrom,
  isDiskKey,
  normaliseTags,
  parseDrive,
  parseNic,
  parseSize,
  printDrive,
  printNic,
  printSize,
} from './vmConfig.ts';

/** A config write after the checks that come before the lock. */
export interface Update {
  vmid: number;
  set: Map<string, string>;
  remove: string[];
  revert: string[];
  force: boolean;
  digest: string | undefined;
}

/** Throws `checksum mismatch …` when the caller's digest is not the file's. */
export function checkDigest(vm: Vm, update: Update): void {
  if (update.digest !== undefined && update.digest !== vmDigest(vm)) {
    throw dieWith('checksum mismatch (file change by other user?)');
  }
}

/** Any lock refuses; but whoever only removes the state of a hibernated VM unlocks it (api-facts 3). */
export function checkUpdateLock(vm: Vm, update: Update): void {
  const removesState =
    update.set.size === 0 && update.remove.length === 1 && update.remove[0] === 'vmstate';
  checkLock(vm, removesState ? ['suspended'] : []);
}

/** Throws when a boot order names what is not there, or will not be (api-facts 5.12). */
function checkBootOrder(vm: Vm, update: Update, value: string): void {
  for (const device of bootOrder(new Map([['boot', value]])) ?? []) {
    const exists = update.set.has(device) || vm.pending.has(device) || vm.config.has(device);
    if (exists && !update.remove.includes(device)) continue;
    throw dieWith(`invalid bootorder: device '${device}' does not exist'`);
  }
}

/** Keys that take effect at once on a running VM (api-facts 5.12). */
const ALWAYS_LIVE =
  /^(name|description|tags|onboot|protection|startup|shares|ci\w+|ipconfig\d+|nameserver|searchdomain|sshkeys)$/;

/** Under the lock: pending first, then what can be applied now. */
export function applyUpdate(call: Call, update: Update): void {
  const vm = requireVm(call.core.cluster, call.node, update.vmid);
  checkDigest(vm, update);
  checkUpdateLock(vm, update);
  for (const key of update.revert) {
    vm.pending.delete(key);
    vm.pendingDelete.delete(key);
  }
  for (const key of update.remove) {
    vm.pending.delete(key);
    if (vm.config.has(key)) removeKey(call, vm, key, update.force);
  }
  for (const [key, value] of update.set) {
    if (key === 'boot') {
      checkBootOrder(vm, update, value);
      if (value.startsWith('order=') && vm.config.has('bootdisk')) vm.pendingDelete.add('bootdisk');
    }
    const stored = storedValue(call, key, value);
    appendToBoot(vm, key, stored);
    vm.pendingDelete.delete(key);
    if (vm.config.get(key) === stored) vm.pending.delete(key);
    else vm.pending.set(key, stored);
  }
  if (vm.running === null) {
    applyPending(vm);
    return;
  }
  for (const [key, value] of vm.pending) {
    if (!appliesLive(vm, key)) continue;
    vm.config.set(key, value);
    vm.pending.delete(key);
  }
  for (const key of vm.pendingDelete) {
    if (!appliesLive(vm, key)) continue;
    vm.config.delete(key);
    vm.pendingDelete.delete(key);
  }
}

function appliesLive(vm: Vm, key: string): boolean {
  if (ALWAYS_LIVE.test(key) || /^net\d+$/.test(key)) return true;
  const old = vm.config.get(key);
  // Only the medium of a drive that is there already can be changed.
  return isDiskKey(key) && old !== undefined && isCdrom(parseDrive(key, old));
}

function removeKey(call: Call, vm: Vm, key: string, force: boolean): void {
  const value = vm.config.get(key) ?? '';
  vm.pendingDelete.add(key);
  if (key === 'vmstate') forgetState(call, vm, value);
  const order = bootOrder(vm.config);
  if (order?.includes(key) === true) {
    vm.pending.set('boot', `order=${order.filter((device) => device !== key).join(';')}`);
  }
  if (!isDiskKey(key) || isCdrom(parseDrive(key, value))) return;
  if (vm.config.get('protection') === '1') {
    throw dieWith(`can't remove drive '${key}' - protection mode enabled`);
  }
  const { file } = parseDrive(key, value);
  const volume = call.core.cluster.storages.lookup(file, call.node);
  if (force) {
    if (volume !== undefined) call.core.cluster.storages.remove(volume);
    return;
  }
  for (let index = 0; ; index += 1) {
    if (vm.config.has(`unused${index}`)) continue;
    vm.config.set(`unused${index}`, file);
    return;
  }
}

/** The memory of a hibernated VM, and what was kept with it. */
function forgetState(call: Call, vm: Vm, volid: string): void {
  const { storages } = call.core.cluster;
  const volume = storages.lookup(volid, call.node);
  if (volume !== undefined) storages.remove(volume);
  for (const key of ['lock', 'runningmachine', 'runningcpu']) vm.config.delete(key);
}

/** A new CD-ROM joins the boot order by itself (pve/README 25). */
function appendToBoot(vm: Vm, key: string, stored: string): void {
  if (!isDiskKey(key) || vm.config.has(key) || vm.pending.has(key)) return;
  if (!isCdrom(parseDrive(key, stored))) return;
  const order = bootOrder(vm.pending) ?? bootOrder(vm.config);
  if (order === null || order.includes(key)) return;
  vm.pending.set('boot', `order=${[...order, key].join(';')}`);
}

/** The text that ends up in the file: canonical, with sizes and MACs filled in. */
function storedValue(call: Call, key: string, value: string): string {
  if (key === 'tags') return normaliseTags(value);
  if (key === 'description') return value.replace(/\s+$/, '');
  if (/^net\d+$/.test(key)) return printNic(parseNic(key, value));
  if (!isDiskKey(key)) return value;
  const drive = parseDrive(key, value);
  if (drive.file === 'none' || drive.file === 'cdrom') return printDrive(drive);
  const volume = call.core.cluster.storages.lookup(drive.file, call.node);
  if (volume === undefined) throw dieWith(`volume '${drive.file}' does not exist`);
  drive.options.set('size', printSize(volume.size));
  if (parseSize(drive.options.get('size') ?? '') === null) drive.options.delete('size');
  return printDrive(drive);
}
