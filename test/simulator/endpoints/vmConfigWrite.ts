import { mergedConfig, vmOn, type Vm } from '../cluster.ts';
import { applyUpdate, checkDigest, checkUpdateLock, type Update } from '../configUpdate.ts';
import {
  flag,
  integer,
  optionalText,
  silentOwner,
  startTask,
  text,
  underVmLock,
  vmPrivilege,
  type Call,
  type Endpoint,
} from '../core.ts';
import { ApiError, dieWith, missingConfig, paramError, textOf } from '../errors.ts';
import { common, type Params, type Property, type Schema } from '../schema.ts';
import { isCdrom, isDiskKey, isIsoVolume, parseDrive } from '../vmConfig.ts';
import { splitVolid } from '../volumes.ts';
import { checkBridge } from './bridge.ts';
import { configProperty, requiredPrivilege } from './configKeys.ts';

const ANY_CONFIG_PRIVILEGE = [
  'VM.Config.Disk',
  'VM.Config.CDROM',
  'VM.Config.CPU',
  'VM.Config.Memory',
  'VM.Config.Network',
  'VM.Config.HWType',
  'VM.Config.Options',
  'VM.Config.Cloudinit',
];

const CONTROL: Schema = {
  delete: { type: 'string', optional: true, list: true },
  revert: { type: 'string', optional: true, list: true },
  force: common.optionalBoolean,
  digest: common.digest,
  skiplock: common.optionalBoolean,
};

export const vmConfigWriteEndpoints: readonly Endpoint[] = [
  {
    method: 'PUT',
    path: '/nodes/{node}/qemu/{vmid}/config',
    proxied: true,
    protected: true,
    check: vmPrivilege(...ANY_CONFIG_PRIVILEGE),
    schema: CONTROL,
    lookup: lookupOption,
    handler: async (call) => {
      const update = prepare(call);
      await underVmLock(call, update.vmid, silentOwner(), async () => {
        checkQuorum(call, update.vmid);
        applyUpdate(call, update);
      });
      return null;
    },
  },
  {
    method: 'POST',
    path: '/nodes/{node}/qemu/{vmid}/config',
    proxied: true,
    protected: true,
    check: vmPrivilege(...ANY_CONFIG_PRIVILEGE),
    schema: {
      ...CONTROL,
      background_delay: { type: 'integer', optional: true, minimum: 1, maximum: 30 },
    },
    lookup: lookupOption,
    handler: async (call) => {
      const update = prepare(call);
      const upid = startTask(call, 'qmconfig', update.vmid, async (worker) => {
        await underVmLock(call, update.vmid, worker, async () => {
          worker.log(describeUpdate(update));
          checkQuorum(call, update.vmid);
          try {
            applyUpdate(call, update);
          } catch (error) {
            throw asTaskError(error);
          }
        });
      });
      const delay = integer(call.params, 'background_delay');
      if (delay === 0) return upid;
      const task = call.core.tasks.find(upid);
      if (task === undefined) return upid;
      await Promise.race([call.core.tasks.ended(task), call.core.clock.sleep(delay)]);
      if (task.running) return upid;
      if (task.exitstatus === 'OK') return null;
      throw dieWith(`failed to update VM ${update.vmid}: ${task.exitstatus ?? ''}`);
    },
  },
];

function lookupOption(key: string): Property | undefined {
  return configProperty(key);
}

function asTaskError(error: unknown): Error {
  if (!(error instanceof ApiError) || error.errors === undefined) return new Error(textOf(error));
  const details = Object.entries(error.errors).map(([key, value]) => `${key}: ${value}`);
  return new Error(`${error.status} ${error.message}\n${details.join('\n')}`);
}

/** First line of the task log (14-noquorum-config-post-task-log). */
function describeUpdate(update: Update): string {
  const options = [...update.set].map(([key, value]) => `-${key} ${value}`);
  if (update.remove.length > 0) options.push(`-delete ${update.remove.join(',')}`);
  return `update VM ${update.vmid}: ${options.join(' ')}`;
}

/** Everything that fails before the lock is taken. */
function prepare(call: Call): Update {
  const { core, params, node } = call;
  const vmid = integer(params, 'vmid');
  if (flag(params, 'skiplock') === true) {
    throw paramError({ skiplock: 'Only root may use this option.' });
  }
  const update: Update = {
    vmid,
    set: new Map(),
    remove: list(params, 'delete'),
    revert: list(params, 'revert'),
    force: flag(params, 'force') === true,
    digest: optionalText(params, 'digest'),
  };
  const control = new Set(['node', 'vmid', 'background_delay', ...Object.keys(CONTROL)]);
  for (const [key, value] of Object.entries(params)) {
    if (control.has(key)) continue;
    update.set.set(key, typeof value === 'boolean' ? (value ? '1' : '0') : String(value));
  }
  if (update.set.size + update.remove.length + update.revert.length === 0) {
    throw dieWith('no options specified');
  }
  for (const key of update.remove) {
    if (configProperty(key) === undefined && !/^unused\d+$/.test(key)) {
      throw paramError({ delete: `unknown option '${key}'` });
    }
    if (update.set.has(key)) {
      throw paramError({ delete: `you can't use '-${key}' and -delete ${key}' at the same time` });
    }
  }
  for (const [key, value] of update.set) checkShape(key, value);
  for (const key of [...update.set.keys(), ...update.remove]) checkPrivilege(call, key, update);
  for (const [key, value] of update.set) if (isDiskKey(key)) checkDriveStorage(call, key, value);
  const vm = vmOn(core.cluster, node, vmid);
  if (vm === undefined) throw missingConfig(node, vmid);
  checkDigest(vm, update);
  checkUpdateLock(vm, update);
  checkBalloon(vm, update);
  return update;
}

/** Throws when the guest would be given more memory than it has (api-facts 5.12). */
function checkBalloon(vm: Vm, update: Update): void {
  if (!update.set.has('memory') && !update.set.has('balloon')) return;
  const merged = mergedConfig(vm);
  const value = (key: string): string | undefined => update.set.get(key) ?? merged.get(key);
  const memory = Number(/\d+/.exec(value('memory') ?? '512')?.[0]);
  if (Number(value('balloon') ?? 0) > memory) {
    throw dieWith('balloon value too large (must be smaller than assigned memory)');
  }
}

function list(params: Params, key: string): string[] {
  return text(params, key)
    .split(/[,;\s]+/)
    .filter((entry) => entry !== '');
}

function checkShape(key: string, value: string): void {
  if (isDiskKey(key)) {
    const drive = parseDrive(key, value);
    if (isIsoVolume(drive.file) && !isCdrom(drive)) {
      throw paramError({ [key]: "explicit 'media=cdrom' is required for iso images" });
    }
  }
}

/** Permissions per key (api-facts 4); throws before anything is written. */
function checkPrivilege(call: Call, key: string, update: Update): void {
  const { core, who } = call;
  const value = update.set.get(key);
  const path = `/vms/${update.vmid}`;
  if (isDiskKey(key)) {
    const old = vmOn(core.cluster, call.node, update.vmid)?.config.get(key);
    const cdrom = [value, old].some(
      (entry) => entry !== undefined && isCdrom(parseDrive(key, entry)),
    );
    core.access.require(who, path, cdrom ? 'VM.Config.CDROM' : 'VM.Config.Disk');
    return;
  }
  if (/^serial\d$/.test(key) && value !== undefined && value !== 'socket') {
    throw dieWith(`only root can modify '${key}' config for real devices`);
  }
  const needed = requiredPrivilege(key);
  if (needed === null) throw dieWith(`only root can set '${key}' config`);
  core.access.require(who, path, ...needed);
  if (/^net\d+$/.test(key)) {
    const old = vmOn(core.cluster, call.node, update.vmid)?.config.get(key);
    for (const nic of [value, old]) if (nic !== undefined) checkBridge(call, key, nic);
  }
}

function checkDriveStorage(call: Call, key: string, value: string): void {
  const drive = parseDrive(key, value);
  if (drive.file === 'none' || drive.file === 'cdrom') return;
  const split = splitVolid(drive.file);
  if (split === null) return;
  const storage = call.core.cluster.storages.check(split.storage, call.node);
  const path = `/storage/${storage.id}`;
  if (isCdrom(drive)) {
    call.core.access.require(call.who, path, 'Datastore.AllocateSpace', 'Datastore.Audit');
  }
}

function checkQuorum(call: Call, vmid: number): void {
  if (call.core.cluster.nodes.get(call.node)?.quorum !== false) return;
  throw dieWith(
    `unable to open file '/etc/pve/nodes/${call.node}/qemu-server/${vmid}.conf.tmp.${process.pid % 1000}' - Permission denied`,
  );
}
