/**
 * Which privileges the operator's token needs, and which of them it lacks. Roles are those of the installation guide
 * (specification, Proxmox prerequisites).
 */
import type { PermissionTable } from './api.ts';

/** Role `ProxyOperator`, granted on `/`. */
export const operatorPrivileges: readonly string[] = [
  'VM.Allocate',
  'VM.Clone',
  'VM.Audit',
  'VM.Config.CDROM',
  'VM.Config.CPU',
  'VM.Config.Memory',
  'VM.Config.Disk',
  'VM.Config.Network',
  'VM.Config.Options',
  'VM.PowerMgmt',
  'VM.GuestAgent.Audit',
  'Datastore.Audit',
  'Datastore.AllocateSpace',
  'Datastore.AllocateTemplate',
  'Sys.Audit',
  'SDN.Use',
];
/** Role `ProxyOperatorSeeds`, granted on the seed storage; it replaces the other one there (pve/README 41). */
export const seedPrivileges: readonly string[] = [
  'Datastore.Allocate',
  'Datastore.AllocateTemplate',
  'Datastore.AllocateSpace',
  'Datastore.Audit',
];

/** What of a provider's settings decides about privileges. */
export interface PrivilegeNeeds {
  node: string;
  /** Proxmox VE 8 has `VM.Monitor` where 9 has `VM.GuestAgent.Audit` (api-facts 4). */
  pveVersion: string;
  templateVmids: readonly number[];
  /** Any VMID the operator may use: the privileges on new VMs. */
  vmid: number;
  isoStorage: string;
  /** `null`: disks go where those of the template are. */
  storage: string | null;
  /** net0 is written. */
  network: boolean;
  /** A machine type grows the disk. */
  resize: boolean;
}
/** One of `anyOf` is enough. */
export interface Need {
  path: string;
  anyOf: readonly string[];
}

/** The needs that the token's privileges do not meet, in the order of the needs (api-facts 4). */
export function missingPrivileges(table: PermissionTable, needs: PrivilegeNeeds): Need[] {
  return needsOf(needs).filter(({ path, anyOf }) => {
    const held = path === anywhereInSdn ? heldBelow(table, '/sdn') : heldOn(table, path);
    return !anyOf.some((privilege) => held.has(privilege));
  });
}

/** `VM.Clone on /vms/9001, …` */
export function describeMissing(missing: readonly Need[]): string {
  return missing.map(({ path, anyOf }) => `${anyOf.join(' or ')} on ${path}`).join(', ');
}

/** Where bridges and VNets are is not known before a template was read. */
const anywhereInSdn = '/sdn/zones/localnetwork';

function needsOf(needs: PrivilegeNeeds): Need[] {
  const all = (path: string, ...privileges: string[]): Need[] =>
    privileges.map((privilege) => ({ path, anyOf: [privilege] }));
  const vms = `/vms/${needs.vmid}`;
  const seeds = `/storage/${needs.isoStorage}`;
  const agent = /^[1-8]\./.test(needs.pveVersion)
    ? ['VM.Monitor']
    : ['VM.GuestAgent.Audit', 'VM.GuestAgent.Unrestricted'];
  return [
    ...all(`/nodes/${needs.node}`, 'Sys.Audit'),
    ...needs.templateVmids.flatMap((vmid) => all(`/vms/${vmid}`, 'VM.Audit', 'VM.Clone')),
    // The listing proves that a VM is gone only with this right on all of them.
    ...all('/vms', 'VM.Audit'),
    ...all(vms, 'VM.Allocate', 'VM.Config.CDROM', 'VM.Config.CPU', 'VM.Config.Memory'),
    ...all(vms, 'VM.Config.Options', 'VM.PowerMgmt'),
    ...(needs.network ? all(vms, 'VM.Config.Network') : []),
    ...(needs.resize ? all(vms, 'VM.Config.Disk') : []),
    { path: vms, anyOf: agent },
    ...all(
      needs.storage === null ? '/storage' : `/storage/${needs.storage}`,
      'Datastore.AllocateSpace',
    ),
    ...all(seeds, 'Datastore.Allocate', 'Datastore.AllocateTemplate'),
    { path: seeds, anyOf: ['Datastore.Audit', 'Datastore.AllocateSpace'] },
    ...all(anywhereInSdn, 'SDN.Use'),
  ];
}

/** The most specific listed path decides; what is not listed has what its nearest listed ancestor passes on. */
function heldOn(table: PermissionTable, path: string): ReadonlySet<string> {
  const exact = table.get(path);
  if (exact !== undefined) return new Set(exact.keys());
  for (let at = parentOf(path); at !== null; at = parentOf(at)) {
    const held = table.get(at);
    if (held === undefined) continue;
    return new Set([...held].filter(([, passedOn]) => passedOn).map(([privilege]) => privilege));
  }
  return new Set();
}

function heldBelow(table: PermissionTable, root: string): ReadonlySet<string> {
  const below = [...table].filter(([path]) => path.startsWith(`${root}/`));
  const held = below.flatMap(([, privileges]) => [...privileges.keys()]);
  return new Set([...heldOn(table, root), ...held]);
}

function parentOf(path: string): string | null {
  if (path === '/') return null;
  return path.slice(0, path.lastIndexOf('/')) || '/';
}
