/** What the cluster as a whole must be like before something is concluded from it. */
import type { StepDeps } from '../deps.ts';
import type { NodeRow, ProxmoxApi, VmRow } from '../proxmox/api.ts';
import { transient } from '../providerError.ts';
import { lowestVmid } from '../vm/identity.ts';

const allVms = '/vms';

/**
 * Throws Transient `MassAbsence` while that alarm of the provider stands and nobody has confirmed it: what is missing then
 * may be there (design §7). Throws unless the token sees the VMs under `path` (`/vms`, `/vms/<vmid>`): the listing omits the others without a
 * word (pve/README 21), so without this right a missing row proves nothing.
 */
export async function proveListing(
  deps: StepDeps,
  api: ProxmoxApi,
  provider: string,
  path: string,
): Promise<void> {
  await requireNoAlarm(deps, provider);
  await proveRights(api, provider, path);
}

/**
 * Throws Transient `ListingIncomplete` when the cluster has neither the VM's node nor one of the config: it is another
 * cluster then, whose listing says nothing about this VM, whether or not the watch has raised its alarm yet.
 */
export function proveCluster(
  { providers }: StepDeps,
  nodes: readonly NodeRow[],
  { provider, vmid, node }: { provider: string; vmid: number; node: string },
): void {
  const known = new Set([node, ...providers.config(provider).proxmox.nodes]);
  if (nodes.some((row) => known.has(row.node))) return;
  const remedy = `check proxmox.url and proxmox.nodes of provider ${provider}`;
  throw transient(
    'ListingIncomplete',
    `VM ${vmid} is not listed, but none of the known nodes (${[...known].slice(0, 5).join(', ')}) is in the cluster: is another cluster behind the URL? ${remedy}`,
    { scope: 'provider', provider, remedy },
  );
}

/** The second half of `proveListing` alone: for who does nothing about what is missing. */
export async function proveRights(api: ProxmoxApi, provider: string, path: string): Promise<void> {
  if (await seesVms(api, path)) return;
  const remedy = `pveum role modify ProxyOperator --append 1 --privs "VM.Audit", and see that no ACL on /vms or below takes it away (pveum acl list)`;
  throw transient(
    'ListingIncomplete',
    `provider ${provider}: the token has no VM.Audit on ${path === allVms ? `${allVms} and below` : path}, so VMs missing from the listing may exist; ${remedy}`,
    { scope: 'provider', provider, remedy },
  );
}

/** A right on all VMs must propagate: one on `/vms` alone shows none of them (api-facts 5.26). */
export async function seesVms(api: ProxmoxApi, path: string): Promise<boolean> {
  const propagates = (await api.getPermissions(path)).get('VM.Audit');
  return path === allVms ? propagates === true : propagates !== undefined;
}

/**
 * For «none of ours is listed»: the right on all VMs, and on each of `vmids` that is not listed, since an ACL of its own
 * may hide a VM. Throws as `proveListing`.
 */
export async function proveAbsence(
  deps: StepDeps,
  api: ProxmoxApi,
  provider: string,
  rows: readonly VmRow[],
  vmids: readonly number[],
): Promise<void> {
  await proveListing(deps, api, provider, allVms);
  const listed = new Set(rows.map(({ vmid }) => vmid));
  for (const vmid of vmids) {
    // Proxmox has no lower VMID and takes no path with one.
    if (vmid >= lowestVmid && !listed.has(vmid)) await proveRights(api, provider, `/vms/${vmid}`);
  }
}

/**
 * A VM that no run recorded may be a restored backup of the one that was: it is the Proxy's only where each of `recorded`
 * is listed, or proven absent. Throws as `proveListing`.
 */
export async function proveSuccession(
  deps: StepDeps,
  api: ProxmoxApi,
  provider: string,
  rows: readonly VmRow[],
  { recorded, found }: { recorded: readonly number[]; found: number },
): Promise<void> {
  const listed = new Set(rows.map(({ vmid }) => vmid));
  if (recorded.includes(found) || recorded.every((vmid) => listed.has(vmid))) return;
  await proveAbsence(deps, api, provider, rows, recorded);
}

async function requireNoAlarm({ alarms, providers }: StepDeps, provider: string): Promise<void> {
  const alarm = await alarms.read(provider);
  if (alarm === null) return;
  const { confirmAbsence } = providers.config(provider).proxmox;
  if (confirmAbsence === alarm.id) return;
  const remedy = `bring the VMs back, or confirm that they are gone: confirmAbsence: ${alarm.id} in the providers config`;
  throw transient(
    'MassAbsence',
    `provider ${provider}: ${alarm.message} (alarm ${alarm.id}, since ${alarm.since}), so nothing is concluded from a missing VM; ${remedy}`,
    { scope: 'provider', provider, remedy },
  );
}

/** Throws Transient `Unreachable` unless the cluster itself says that the node is online. */
export function requireOnline(nodes: readonly NodeRow[], node: string, why: string): void {
  const status = nodes.find((row) => row.node === node)?.status;
  if (status === 'online') return;
  const state = status === undefined ? 'is not a node of the cluster' : `is ${status}`;
  const remedy = `bring node ${node} back (pvecm status)`;
  throw transient('Unreachable', `node ${node}, ${why}, ${state}; ${remedy}`, {
    scope: 'provider',
    node,
    remedy,
  });
}
