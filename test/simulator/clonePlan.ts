import { checkLock, isMember, isTemplate, vmOn, type Vm } from './cluster.ts';
import { flag, integer, optionalText, type Call } from './core.ts';
import { checkBridge } from './endpoints/bridge.ts';
import { dieWith, noConfigFound, paramError } from './errors.ts';
import type { StorageFixture } from './fixture.ts';
import { drivesOf, isCdrom } from './vmConfig.ts';
import { splitVolid } from './volumes.ts';

/** What a clone request came to after the early checks. */
export interface ClonePlan {
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

/** The early checks; they run again in the worker (api-facts 5.13). */
export function planClone(call: Call): ClonePlan {
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
  const snapshot = optionalText(params, 'snapname');
  // There are no snapshots here.
  if (snapshot !== undefined) throw dieWith(`snapshot '${snapshot}' does not exist`);
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
