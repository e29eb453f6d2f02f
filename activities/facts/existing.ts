/** A fresh look at a VM that served: is it there, does it run, does it lack anything (design §7)? Changes nothing. */
import type { StepContext, StepDeps } from '../deps.ts';
import { isOutOfReach, permanent, transient } from '../providerError.ts';
import type { ProxmoxApi, VmConfig, VmRow, VmStatus } from '../proxmox/api.ts';
import { rowsThatMatter } from '../vm/allocation.ts';
import { agentIsEnabled, hasOurTag, ideSeedVolid } from '../vm/hardware.ts';
import { hasProcess, isTaskLock, powerOf, unlockRemedy } from '../vm/state.ts';
import type {
  AllocateVmidInput,
  AllocateVmidResult,
  ExistingVm,
} from '../../workflows/contract/steps.ts';
import { requireLeftoverPlace } from './census.ts';
import { proveAbsence, proveCluster, proveSuccession, requireOnline } from './cluster.ts';
import { lockHolder, waitingForLock } from './locks.ts';
import { claimOf, ownershipOf, readConfig, readStatus, vmAt } from './vms.ts';

/**
 * Name and mark decide whether a VM is ours, as everywhere; a VM under our name that is not ours is Permanent
 * `OwnershipConflict`, and left alone. `gone` only from a listing with proven rights. Throws Transient `Unreachable` with
 * the node when that does not answer, `WaitingForLock` while a task makes or ends the VM, `VmLeftover` for a dead lock
 * where no more VMIDs of the provider may be given up.
 */
export async function lookAtExisting(
  deps: StepDeps,
  context: StepContext,
  input: AllocateVmidInput,
): Promise<AllocateVmidResult> {
  const { plan, ref, recordedVmids, avoidVmids: avoid } = input;
  const api = deps.providers.api(plan.provider, context.call);
  const uidPrefix = ref.uid.slice(0, 8).toLowerCase();
  const [rows, nodes] = await Promise.all([api.listVms(), api.listNodes()]);
  const wish = { uidPrefix, recorded: recordedVmids, probed: [], avoid };
  const matter = rowsThatMatter(rows, wish);
  // The one that is recorded is the one meant; another one counts only where that is none of ours.
  const sorted = matter.toSorted(
    (left, right) =>
      Number(recordedVmids.includes(right.vmid)) - Number(recordedVmids.includes(left.vmid)),
  );
  for (const row of sorted) {
    if (recordedVmids.includes(row.vmid)) {
      requireOnline(nodes, row.node, `where VM ${row.vmid} is listed`);
    }
    const found = await lookAt(deps, api, row, input);
    if (found === null) continue;
    const heir = { recorded: recordedVmids, found: found.vmid };
    await proveSuccession(deps, api, plan.provider, rows, heir);
    if (found.kind === 'stuck') await requireLeftoverPlace(deps, plan.provider, found);
    return found;
  }
  const { provider, node, vmidMin: vmid } = plan;
  await proveAbsence(deps, api, provider, rows, recordedVmids);
  proveCluster(deps, nodes, { provider, node, vmid });
  return { kind: 'gone', vmid };
}

/** `null`: it is none of ours. */
async function lookAt(
  deps: StepDeps,
  api: ProxmoxApi,
  row: VmRow,
  input: AllocateVmidInput,
): Promise<AllocateVmidResult | null> {
  const { plan, ref } = input;
  const { vmid, node } = row;
  const config = await reachableConfig(api, row);
  const verdict = ownershipOf(row, config, claimOf(deps, plan.provider, ref, plan.vmName));
  const lock = config.values.lock ?? null;
  if (verdict.kind === 'foreign') return null;
  // Somebody's clone is being made at this VMID, or an interrupted destroy left it.
  if (verdict.kind === 'nameless') return lock === null ? null : underTaskLock(api, row, lock);
  if (verdict.kind === 'ours') {
    if (lock !== null && isTaskLock(lock)) return underTaskLock(api, row, lock);
    return existing(api, row, config, await readStatus(api, row), input);
  }
  const remedy = `look at the description of VM ${vmid}: the operator's lines in it were changed`;
  throw permanent(
    'OwnershipConflict',
    `${vmAt(row)} is named ${plan.vmName}, but its mark does not say that it is this Proxy's (UID ${ref.uid}); it is left alone; ${remedy}`,
    // The provider's: somebody may mend the description, which no row tells, so it is looked at again.
    { scope: 'provider', vmid, node, remedy },
  );
}

/** Proxmox forwards to the node of a VM, so that one may be silent while the API answers. */
async function reachableConfig(api: ProxmoxApi, row: VmRow): Promise<VmConfig> {
  try {
    return await readConfig(api, row);
  } catch (error) {
    if (!isOutOfReach(error)) throw error;
    const { vmid, node } = row;
    const remedy = `bring node ${node} back (pvecm status)`;
    const message = `node ${node} of VM ${vmid} does not answer; ${remedy}`;
    throw transient('Unreachable', message, { scope: 'provider', vmid, node, remedy }, error);
  }
}

async function underTaskLock(
  api: ProxmoxApi,
  row: VmRow,
  lock: string,
): Promise<AllocateVmidResult> {
  const { vmid, node } = row;
  const holder = await lockHolder(api, row, lock);
  if (holder.kind === 'nobody') {
    return { kind: 'stuck', vmid, node, lock, remedy: unlockRemedy(vmid, node) };
  }
  throw waitingForLock(row, lock);
}

async function existing(
  api: ProxmoxApi,
  { vmid, node }: VmRow,
  { values }: VmConfig,
  status: VmStatus,
  { plan }: AllocateVmidInput,
): Promise<ExistingVm> {
  const lock = values.lock ?? null;
  const power = powerOf(status, lock);
  const volid = ideSeedVolid(values);
  const named = volid?.endsWith(`/${plan.seedFile}`) === true ? volid : null;
  const isoStorage = named?.split(':')[0] ?? null;
  return {
    kind: 'existing',
    vmid,
    node,
    power,
    ioError: status.qmpstatus === 'io-error',
    lock,
    tagged: hasOurTag(values.tags),
    agentEnabled: agentIsEnabled(values.agent),
    seed: await seedOf(api, node, named, isoStorage, !hasProcess(power)),
    isoStorage,
  };
}

/** Needed for a start only, so nobody asks while the VM runs. */
async function seedOf(
  api: ProxmoxApi,
  node: string,
  volid: string | null,
  storage: string | null,
  ask: boolean,
): Promise<ExistingVm['seed']> {
  if (volid === null || storage === null) return 'none';
  if (!ask) return 'listed';
  const isos = await api.listIsos(node, storage);
  return isos.some((iso) => iso.volid === volid) ? 'listed' : 'missing';
}
