/** All VMs of ours on a provider, held against all Proxies (design §7). VMs are listed first, Proxies second. */
import type { StepContext, StepDeps } from '../deps.ts';
import type { Survey } from '../kubernetes/survey.ts';
import { isNotFound, isOutOfReach, transient } from '../providerError.ts';
import type { ProxmoxApi, VmRow } from '../proxmox/api.ts';
import { installationHex, lowestVmid, parseVmName } from '../vm/identity.ts';
import { keptBecause, ownedBy, ownerOf, type Collector, type SeenVm } from '../vm/orphan.ts';
import { hibernationLock } from '../vm/state.ts';
import type {
  Census,
  CollectionSettings,
  OrphanVm,
  SettledLeftover,
} from '../../workflows/contract/collection.ts';
import { proveRights, seesVms } from './cluster.ts';
import { readUntold, type UntoldVms } from './twins.ts';
import { vmAt } from './vms.ts';

/**
 * Complete but for nodes that do not answer, or an error: throws Transient `ListingIncomplete` without the rights,
 * `KubernetesUnavailable`, and what the reading of a config throws.
 */
export async function takeCensus(
  deps: StepDeps,
  context: StepContext,
  provider: string,
): Promise<Census> {
  const api = deps.providers.api(provider, context.call);
  const rows = await api.listVms();
  await proveRights(api, provider, '/vms');
  const survey = await deps.survey();
  const alarm = await deps.alarms.read(provider);
  const shownAlarm = await deps.alarms.readCollection(provider);
  const named = rows.filter((row) => hasOurName(row, deps.installation));
  const candidates = named.filter((row) => !belongsTo(row.name, survey));
  const found: OrphanVm[] = [];
  let skipped = 0;
  for (const row of candidates) {
    const seen = await readableVm(context, api, row);
    if (seen === null) skipped += 1;
    const orphan = seen === null ? null : orphanOf(deps.installation, seen, survey);
    if (orphan !== null) found.push(orphan);
  }
  const untold = await untoldFor(api, rows, found);
  const all = [...rows, ...found];
  const orphans = found.map((orphan) => withTwins(orphan, all, untold));
  const leftovers = await settledLeftovers(deps, context, api, provider, rows, survey);
  const removable = orphans.filter(({ kept }) => kept === null).length;
  const managed = named.length - candidates.length + removable;
  const counts = { vms: rows.length, candidates: candidates.length, managed, skipped };
  context.log.debug({ ...counts, orphans: orphans.length }, 'proxmox vms listed');
  for (const { vmid, node, name } of named) {
    context.log.trace({ vmid, node, name }, 'proxmox listed instance');
  }
  const settings = settingsOf(deps, provider);
  const confirmed = alarm?.id === settings.confirmAbsence;
  return {
    settings,
    managed,
    orphans,
    leftovers,
    listVersion: survey.version,
    alarm: confirmed ? null : (alarm?.id ?? null),
    shownAlarm,
  };
}

/** Costs requests, so only where an orphan could go. */
async function untoldFor(
  api: ProxmoxApi,
  rows: readonly VmRow[],
  found: readonly OrphanVm[],
): Promise<UntoldVms> {
  const none: UntoldVms = { named: new Map(), unread: null };
  return found.some(({ kept }) => kept === null) ? readUntold(api, rows) : none;
}

/**
 * While another VM has its name, or may have it, nobody can tell which of them is ours (design §3); each step of a removal
 * says so, too. `all`: rows, and what is known by its config, whose row may tell an older name.
 */
function withTwins(
  orphan: OrphanVm,
  all: readonly { vmid: number; node: string; name?: string }[],
  { named, unread }: UntoldVms,
): OrphanVm {
  if (orphan.kept !== null) return orphan;
  const young = named.get(orphan.name);
  const twins = [...all, ...(young === undefined ? [] : [{ ...young, name: orphan.name }])].filter(
    ({ vmid, name }) => vmid !== orphan.vmid && name === orphan.name,
  );
  const others = [...new Set(twins.map(vmAt))].join(', ');
  if (others !== '') {
    return { ...orphan, kept: `${others} has the same name; remove or rename all but one` };
  }
  if (unread === null) return orphan;
  const kept = `${vmAt(unread)} cannot be read, and may have the same name; is node ${unread.node} there?`;
  return { ...orphan, kept };
}

/** The `gc` block in force. Throws Transient `ProviderUnknown`. */
export function settingsOf(deps: StepDeps, provider: string): CollectionSettings {
  const { gc, confirmAbsence, requestTimeoutSeconds } = deps.providers.config(provider).proxmox;
  return {
    mode: gc.mode,
    graceMs: gc.graceMinutes * 60_000,
    confirmAbsence,
    requestBoundMs: requestTimeoutSeconds * 1_000,
  };
}

/** A Proxy of that UID exists, as far as the name of a VM or seed tells: its first eight digits. */
export function belongsTo(vmName: string | undefined, { proxies }: Survey): boolean {
  const prefix = parseVmName(vmName ?? '')?.uidPrefix;
  return (
    prefix !== undefined && proxies.some(({ ref }) => ref.uid.toLowerCase().startsWith(prefix))
  );
}

/** A row's name is a hint: it decides which configs are read, and the config decides the rest. */
function hasOurName({ type, name, template }: VmRow, { hex, also }: Collector): boolean {
  const parts = parseVmName(name ?? '');
  if (parts === null || type !== 'qemu' || template === true) return false;
  return [hex, ...also.map(installationHex)].includes(parts.installationHex);
}

function orphanOf(collector: Collector, seen: SeenVm, survey: Survey): OrphanVm | null {
  const owned = ownedBy(collector, seen);
  if (owned === null || belongsTo(owned.name, survey)) return null;
  const { vmid, node } = seen;
  const owner = ownerOf(owned.mark);
  const nobody = { namespace: '', name: owned.parts.slug, uid: owned.mark.uid.toLowerCase() };
  return {
    vmid,
    node,
    name: owned.name,
    owner: owner ?? nobody,
    kept: owner === null ? 'its mark names no Proxy' : keptBecause(seen, owned),
  };
}

/** `null` when it is not there any more. */
async function seenVm(api: ProxmoxApi, { vmid, node, type }: VmRow): Promise<SeenVm | null> {
  try {
    const { values } = await api.getVmConfig(node, vmid);
    return { vmid, node, type, values };
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
}

/** `null` also when its node does not answer: a later round reads it. */
async function readableVm(
  context: StepContext,
  api: ProxmoxApi,
  row: VmRow,
): Promise<SeenVm | null> {
  try {
    return await seenVm(api, row);
  } catch (error) {
    if (!isOutOfReach(error)) throw error;
    const { vmid, node, name } = row;
    const seen = { vmid, node, name, reason: error.facts.reason };
    context.log.debug(seen, 'skipping unreadable proxmox vm');
    return null;
  }
}

/** Leftovers of Proxies that exist: of a VMID that nobody holds any more, and of one that was unlocked. */
async function settledLeftovers(
  deps: StepDeps,
  context: StepContext,
  api: ProxmoxApi,
  provider: string,
  rows: readonly VmRow[],
  { proxies }: Survey,
): Promise<SettledLeftover[]> {
  const settled: SettledLeftover[] = [];
  for (const { ref: owner, leftovers } of proxies) {
    for (const { vmid } of leftovers.filter((one) => one.provider === provider)) {
      const row = rows.find((candidate) => candidate.vmid === vmid);
      const state =
        row === undefined
          ? await absentState(api, vmid)
          : await leftoverState(deps, context, api, row, owner.uid);
      if (state !== null) settled.push({ owner, vmid, state });
    }
  }
  return settled;
}

/** An ACL of its own may hide it: it is as it was then (`null`). */
async function absentState(api: ProxmoxApi, vmid: number): Promise<'gone' | null> {
  return vmid < lowestVmid || (await seesVms(api, `/vms/${vmid}`)) ? 'gone' : null;
}

/** `null`: as it was, or not to be read. A bare placeholder has no name, so nothing says that it is ours. */
async function leftoverState(
  { installation }: StepDeps,
  context: StepContext,
  api: ProxmoxApi,
  row: VmRow,
  uid: string,
): Promise<SettledLeftover['state'] | null> {
  const seen = await readableVm(context, api, row);
  if (seen?.values.name === undefined) return null;
  const owned = ownedBy(installation, seen);
  if (owned === null || owned.mark.uid.toLowerCase() !== uid.toLowerCase()) return 'gone';
  const { lock } = seen.values;
  return lock === undefined || lock === hibernationLock ? 'free' : null;
}

/** Leftovers that the whole provider may have (design §5). */
const maxLeftovers = 3;

/** Throws Transient `VmLeftover` when so many VMIDs of the provider are given up that one more is too many. */
export async function requireLeftoverPlace(
  deps: StepDeps,
  provider: string,
  found: { vmid: number; node: string; lock: string; remedy: string },
): Promise<void> {
  const { proxies } = await deps.survey();
  const given = proxies.flatMap(({ leftovers }) =>
    leftovers.filter((one) => one.provider === provider && one.vmid !== found.vmid),
  );
  if (given.length < maxLeftovers) return;
  const { vmid, node, lock, remedy } = found;
  const list = given.map((one) => `${one.vmid} on ${one.node}`).join(', ');
  throw transient(
    'VmLeftover',
    `VM ${vmid} on ${node} is locked (${lock}), and ${given.length} VMIDs of provider ${provider} were given up already (${list}), which is the limit; ${remedy}`,
    { scope: 'provider', provider, vmid, node, lock, remedy },
  );
}
