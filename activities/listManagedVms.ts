/** Lists the VMs that are provably a Proxy's, whatever spec they were made for; or all of ours that have none. */
import type { Step, StepDeps } from './deps.ts';
import { takeCensus } from './facts/census.ts';
import { proveListing } from './facts/cluster.ts';
import { lockHolder, waitingForLock } from './facts/locks.ts';
import { claimOf, ownershipOf, readConfig } from './facts/vms.ts';
import type { ProxmoxApi, VmRow } from './proxmox/api.ts';
import { probe, rowsThatMatter } from './vm/allocation.ts';
import { parseMark, parseVmName, vmidCandidates } from './vm/identity.ts';
import { isTaskLock } from './vm/state.ts';
import type { ProxyRef } from '../workflows/contract/proxy.ts';
import type {
  ListManagedVmsInput,
  ListManagedVmsResult,
  ManagedVm,
} from '../workflows/contract/removalSteps.ts';

/**
 * Complete or an error: throws Transient `ListingIncomplete` without the rights, `Unreachable` when a VM that may be
 * the Proxy's is on a silent node, `WaitingForLock` while one of its candidate VMIDs is being cloned to. A VM that the
 * run recorded is read wherever it is: its row loses its name when its node is silent for long (pve/cluster.md 20), and a
 * backup of it that was restored elsewhere would be taken for it.
 * Without a `ref` as facts/census.ts.
 */
export const listManagedVms: Step<ListManagedVmsInput, ListManagedVmsResult> = async (
  deps,
  context,
  input,
) => {
  const { ref, provider, recorded = [] } = input;
  if (ref === null) return { vms: [], census: await takeCensus(deps, context, provider) };
  const api = deps.providers.api(provider, context.call);
  const rows = await api.listVms();
  await proveListing(deps, api, provider, '/vms');
  const { min, max } = deps.providers.config(provider).proxmox.vmidRange;
  const listed = new Set(rows.map(({ vmid }) => vmid));
  const { probed } = probe(vmidCandidates(ref.uid, min, max), [listed]);
  const uidPrefix = ref.uid.slice(0, 8).toLowerCase();
  const matter = rowsThatMatter(rows, { uidPrefix, recorded, probed, avoid: [] });
  const found = await Promise.all(matter.map((row) => look(deps, api, row, provider, ref)));
  const vms = found.filter((vm) => vm !== null);
  const counts = { vms: rows.length, candidates: matter.length, managed: vms.length };
  context.log.debug(counts, 'proxmox vms listed');
  for (const vm of vms) context.log.trace({ ...vm }, 'proxmox listed instance');
  return { vms, census: null };
};

async function look(
  deps: StepDeps,
  api: ProxmoxApi,
  row: VmRow,
  provider: string,
  ref: ProxyRef,
): Promise<ManagedVm | null> {
  const { vmid, node } = row;
  const config = await readConfig(api, row);
  const { name, lock, description } = config.values;
  if (name === undefined) {
    if (lock === undefined || !isTaskLock(lock)) return null;
    const holder = await lockHolder(api, row, lock);
    // What a dead task left has no owner that could be proven.
    if (holder.kind === 'nobody') return null;
    throw waitingForLock(row, lock);
  }
  const mark = parseMark(description ?? '');
  const parts = parseVmName(name);
  // An empty UID is believed on the exact name of a plan only, and there is none here.
  if (parts === null || mark === null || mark.uid === '') return null;
  const verdict = ownershipOf(row, config, claimOf(deps, provider, ref, name));
  if (verdict.kind !== 'ours' || parts.uidPrefix !== ref.uid.slice(0, 8).toLowerCase()) return null;
  return { vmid, node, name, specHash: mark.spec ?? parts.specPrefix };
}
