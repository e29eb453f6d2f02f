import { newVm, type Vm } from '../cluster.ts';
import { copyInto } from '../cloneDisks.ts';
import { planClone, type ClonePlan } from '../clonePlan.ts';
import { integer, startTask, underVmLock, type Call, type Check, type Endpoint } from '../core.ts';
import { dieWith, forbidden, textOf } from '../errors.ts';
import { common, formats, type Schema } from '../schema.ts';
import { underClusterLock } from '../storageLocks.ts';
import type { Worker } from '../tasks.ts';
import type { Config } from '../vmConfig.ts';
import type { Volume } from '../volumes.ts';
import { requireQuorum } from './power.ts';

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

function clone(call: Call): string {
  const { params } = call;
  requireQuorum(call);
  const plan = planClone(call);
  return startTask(call, 'qmclone', integer(params, 'vmid'), (worker) => run(call, plan, worker), {
    vmName: plan.name ?? '',
  });
}

async function run(call: Call, plan: ClonePlan, worker: Worker): Promise<void> {
  const shared = plan.source.running === null;
  await underVmLock(
    call,
    plan.source.vmid,
    worker,
    () =>
      underVmLock(call, plan.newid, worker, () => makeCopy(call, plan, worker), {
        timeoutSeconds: CLONE_LOCK_SECONDS,
      }),
    { shared, timeoutSeconds: CLONE_LOCK_SECONDS },
  );
}

/** Phases A to D (api-facts 5.13); what fails from B on takes back what was made. */
async function makeCopy(call: Call, plan: ClonePlan, worker: Worker): Promise<void> {
  const { core } = call;
  const copy = createPlaceholder(call, plan, worker);
  const created: Volume[] = [];
  try {
    await copyInto(call, plan, copy, created, worker);
    copy.config.delete('lock');
    if (plan.target !== null) {
      await worker.sleep(0.1);
      copy.node = plan.target;
    }
    if (plan.pool !== undefined) await joinPool(call, plan.pool, plan.newid, worker);
  } catch (error) {
    for (const volume of created) core.cluster.storages.remove(volume);
    // Only the config on this node is removed: what has moved already stays, without its disks.
    if (copy.node === call.node) core.cluster.vms.delete(plan.newid);
    throw dieWith(`clone failed: ${textOf(error)}`);
  }
}

/** The very last step: until then a principal of the pool has no right to the VM (api-facts 4). */
async function joinPool(call: Call, pool: string, vmid: number, worker: Worker): Promise<void> {
  try {
    await underClusterLock(call, 'file-user_cfg', worker, async () => {
      call.core.cluster.pools.find(({ id }) => id === pool)?.members.push(`qemu/${vmid}`);
      await Promise.resolve();
    });
  } catch (error) {
    throw dieWith(`can't add VM ${vmid} to pool '${pool}': ${textOf(error)}`);
  }
}

/** Phase A: from here on the VMID is taken in the whole cluster (pve/README 15, 17). */
function createPlaceholder(call: Call, plan: ClonePlan, worker: Worker): Vm {
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
