/** Finds the Proxy's VM, or the VMID and template for a new one. Changes nothing. */
import type { Step } from './deps.ts';
import { requireLeftoverPlace } from './facts/census.ts';
import { proveAbsence, proveSuccession } from './facts/cluster.ts';
import { lookAtExisting } from './facts/existing.ts';
import { lockHolder } from './facts/locks.ts';
import {
  coolingSince,
  coolingVmids,
  listTasksEverywhere,
  runningClones,
  type RunningClone,
} from './facts/tasks.ts';
import { readTemplate } from './facts/template.ts';
import { claimOf, ownershipOf, readConfig, readStatus } from './facts/vms.ts';
import { isOutOfReach, transient } from './providerError.ts';
import type { NodeRow, ProxmoxApi, VmConfig, VmRow, VmStatus } from './proxmox/api.ts';
import { probe, rowsThatMatter, settle, type CandidateVm } from './vm/allocation.ts';
import { bootDisk, diskKeys, ideSeedVolid } from './vm/hardware.ts';
import { seedVolidFor, vmidCandidates } from './vm/identity.ts';
import type { Claim } from './vm/ownership.ts';
import { hibernationLock, isTaskLock, powerOf } from './vm/state.ts';
import { slotRetryMs } from '../workflows/contract/budgets.ts';
import type { AllocateVmidInput, AllocateVmidResult, Plan } from '../workflows/contract/steps.ts';

/** The cluster as one attempt sees it. */
interface View {
  rows: VmRow[];
  nodes: NodeRow[];
  clones: RunningClone[];
  cooling: Set<number>;
  /** Live status of the VMs that are ours, by VMID. */
  statuses: Map<number, VmStatus>;
}

/**
 * Verdicts: allocation.ts, for `existingOnly` facts/existing.ts. Absence is concluded only from a listing whose rights are proven. Throws Permanent
 * `OwnershipConflict`, `DuplicateVm`, `InstallationMismatch`, `TemplateUnusable`; Transient `WaitingForLock`,
 * `Unreachable`, `ListingIncomplete`, `VmidsExhausted`, `VmVanished`, `CloneOutcomeUnknown`.
 */
export const allocateVmid: Step<AllocateVmidInput, AllocateVmidResult> = async (
  deps,
  context,
  input,
) => {
  if (input.existingOnly === true) return lookAtExisting(deps, context, input);
  const { plan, ref, recordedVmids, avoidVmids } = input;
  const api = deps.providers.api(plan.provider, context.call);
  const view = await readView(api, deps.clock.now());
  const { vacant, probed } = probe(vmidCandidates(ref.uid, plan.vmidMin, plan.vmidMax), [
    new Set(view.rows.map(({ vmid }) => vmid)),
    new Set(avoidVmids),
    new Set([...view.cooling].filter((vmid) => !input.ownFreedVmids.includes(vmid))),
    new Set(view.clones.flatMap(({ vmid }) => vmid ?? [])),
  ]);
  const uidPrefix = ref.uid.slice(0, 8).toLowerCase();
  const wish = { uidPrefix, recorded: recordedVmids, probed, avoid: avoidVmids };
  const claim = claimOf(deps, plan.provider, ref, plan.vmName);
  const seen = await Promise.all(
    rowsThatMatter(view.rows, wish).map((row) => look(api, row, input, claim, view)),
  );
  for (const { vmid, node, verdict } of seen) {
    if (verdict.kind !== 'foreign') continue;
    context.log.debug({ vmid, node }, 'proxmox vmid taken by another vm, probing on');
  }
  const settled = settle(seen, claim) ?? cloneOnItsWay(view, input);
  if (settled !== null) {
    const heir = { recorded: recordedVmids, found: settled.vmid };
    await proveSuccession(deps, api, plan.provider, view.rows, heir);
  }
  if (settled?.kind === 'ours') {
    const { status, qmpstatus } = view.statuses.get(settled.vmid) ?? {};
    context.log.debug({ ...settled, status, qmpstatus }, 'proxmox vm adopted');
  }
  if (settled?.kind === 'stuck') await requireLeftoverPlace(deps, plan.provider, settled);
  if (settled !== null) return settled;

  if (recordedVmids.length > 0) refuseWhileUntold(view, plan, await api.tokenId());
  await proveAbsence(deps, api, plan.provider, view.rows, recordedVmids);
  const template = await readTemplate(api, view.rows, view.nodes, plan);
  if (vacant === null) throw exhausted(plan, probed.length);
  context.log.debug({ vmid: vacant, probed }, 'proxmox vmid chosen');
  return {
    kind: 'vacant',
    vmid: vacant,
    templateNode: template.node,
    diskKeys: diskKeys(template.config.values),
    protectionInherited: template.config.values.protection === '1',
  };
};

async function readView(api: ProxmoxApi, nowMs: number): Promise<View> {
  const [rows, nodes] = await Promise.all([api.listVms(), api.listNodes()]);
  const [active, freed] = await Promise.all([
    listTasksEverywhere(api, nodes, { type: 'qmclone', activeOnly: true }),
    listTasksEverywhere(api, nodes, {
      type: 'qmdestroy',
      since: coolingSince(nowMs),
      limit: 500,
    }),
  ]);
  const clones = await runningClones(api, active.tasks);
  const cooling = coolingVmids(freed.tasks, nowMs);
  return { rows, nodes, clones, cooling, statuses: new Map() };
}

async function look(
  api: ProxmoxApi,
  row: VmRow,
  input: AllocateVmidInput,
  claim: Claim,
  view: View,
): Promise<CandidateVm> {
  const { vmid, node } = row;
  const recorded = input.recordedVmids.includes(vmid);
  const unread = { vmid, node, recorded, lock: null, holder: { kind: 'nobody' } as const };
  const config = await readableConfig(api, row);
  if (config === null) {
    const verdict = { kind: 'unreadable' } as const;
    return { ...unread, verdict, power: 'unknown', complete: false, seedAttached: false };
  }
  const verdict = ownershipOf(row, config, claim);
  const lock = config.values.lock ?? null;
  const matters = verdict.kind === 'ours' || verdict.kind === 'nameless';
  const held = matters && lock !== null && isTaskLock(lock);
  const ours = verdict.kind === 'ours';
  const seed = seedVolidFor(input.plan.isoStorage, input.plan.seedFile);
  const status = ours ? await readStatus(api, row) : null;
  if (status !== null) view.statuses.set(vmid, status);
  return {
    ...unread,
    verdict,
    lock,
    holder: held ? await lockHolder(api, row, lock) : unread.holder,
    power: status === null ? 'unknown' : powerOf(status, lock),
    complete: ours && (await isComplete(api, row, config, input, view)),
    seedAttached: ideSeedVolid(config.values) === seed,
  };
}

/** `null` when the node does not answer. */
async function readableConfig(api: ProxmoxApi, row: VmRow): Promise<VmConfig | null> {
  try {
    return await readConfig(api, row);
  } catch (error) {
    if (isOutOfReach(error)) return null;
    throw error;
  }
}

/**
 * Every disk of its template is there. Without a record of the clone or our seed the template of today is asked; if that is
 * gone too, a boot disk must do: a VM that exists no longer depends on its template.
 */
async function isComplete(
  api: ProxmoxApi,
  { vmid }: VmRow,
  config: VmConfig,
  { plan, recordedDiskKeys }: AllocateVmidInput,
  view: View,
): Promise<boolean> {
  // The disks of a hibernated or locked VM are not touched, so nobody asks.
  const lock = config.values.lock ?? null;
  if (lock !== null && lock !== hibernationLock) return true;
  const recorded = recordedDiskKeys[String(vmid)];
  const there = new Set(diskKeys(config.values));
  if (recorded !== undefined && recorded.length > 0) return recorded.every((key) => there.has(key));
  // Configured, so its clone had ended well; the template may have got another disk since.
  if (ideSeedVolid(config.values)?.endsWith(`/${plan.seedFile}`) === true) return true;
  const template = view.rows.find((row) => row.vmid === plan.templateVmid);
  const online = view.nodes.some((row) => row.node === template?.node && row.status === 'online');
  if (template === undefined || !online) return bootDisk(config.values) !== null;
  const { values } = await readConfig(api, template);
  return diskKeys(values).every((key) => there.has(key));
}

/** A clone we recorded whose VM is not listed yet: its worker is still waiting for the file lock. */
function cloneOnItsWay(
  view: View,
  { recordedVmids }: AllocateVmidInput,
): AllocateVmidResult | null {
  const listed = new Set(view.rows.map(({ vmid }) => vmid));
  for (const { upid, node, vmid } of view.clones) {
    if (vmid === null || listed.has(vmid) || !recordedVmids.includes(vmid)) continue;
    return { kind: 'cloning', vmid, node, upid };
  }
  return null;
}

/**
 * A clone of our token that has not told its VMID may be one that this run sent and got no answer to. Its worker may
 * wait long before it does anything, so the time that has passed proves nothing.
 */
function refuseWhileUntold({ clones }: View, { provider }: Plan, tokenId: string): void {
  const untold = clones.find(({ vmid, upid }) => vmid === null && upid.split(':')[7] === tokenId);
  if (untold === undefined) return;
  const { upid, node } = untold;
  const remedy = 'if that task hangs, stop it in Proxmox';
  throw transient(
    'CloneOutcomeUnknown',
    `clone task ${upid} on ${node} has not told yet which VM it makes; it may be this Proxy's`,
    { scope: 'provider', provider, node, upid, retryAfterMs: slotRetryMs, remedy },
  );
}

function exhausted({ provider, vmidMin, vmidMax }: Plan, tried: number): Error {
  const remedy = 'widen proxmox.vmidRange, or free VMIDs in it';
  return transient(
    'VmidsExhausted',
    `provider ${provider}: all ${tried} candidate VMIDs of this Proxy in ${vmidMin} to ${vmidMax} are taken or were freed within the last 10 minutes; ${remedy}`,
    { scope: 'provider', provider, remedy },
  );
}
