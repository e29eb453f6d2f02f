/** Which VMs a provider's watch looks after, from the Proxies' statuses. Pure. */
import type { Proxy } from '../../api/proxy.ts';
import { proxyWorkflowId } from '../../workflows/contract/messages.ts';
import type { VmPower } from '../../workflows/contract/proxy.ts';

/** One VM as the status of its Proxy describes it. VMs without an address are the line's own business. */
export interface WatchedVm {
  /** `<uid>|<vmid>`. */
  key: string;
  workflowId: string;
  proxy: Proxy;
  role: 'serving' | 'replacement';
  vmid: number;
  node: string;
  name: string;
  ip: string;
  power: VmPower;
}

/** VMs on this provider of Proxies that are not being deleted. */
export function watchedVms(proxies: readonly Proxy[], provider: string): WatchedVm[] {
  return proxies.flatMap((proxy) => (isDeleting(proxy) ? [] : vmsOf(proxy, provider)));
}

/** VMs on this provider of Proxies under deletion: nobody is told of them, but they count for the alarm. */
export function leavingVms(proxies: readonly Proxy[], provider: string): WatchedVm[] {
  return proxies.flatMap((proxy) => (isDeleting(proxy) ? vmsOf(proxy, provider) : []));
}

function vmsOf(proxy: Proxy, provider: string): WatchedVm[] {
  const { metadata, spec, status } = proxy;
  if (spec.mode !== 'Managed') return [];
  const { vmid, node, vmName, ip, replacement } = status;
  const base = { workflowId: proxyWorkflowId(metadata.uid), proxy };
  const keyOf = (id: number): string => `${metadata.uid}|${id}`;
  const vms: WatchedVm[] = [];
  if (vmid !== null && node !== null && vmName !== null && ip !== null) {
    const power = status.power ?? 'running';
    const known = { key: keyOf(vmid), vmid, node, name: vmName, ip, power };
    if ((status.provider ?? spec.provider) === provider) {
      vms.push({ ...base, ...known, role: 'serving' });
    }
  }
  if (replacement !== null && replacement.ip !== null && spec.provider === provider) {
    const { vmid: id, node: at, vmName: name, ip: address } = replacement;
    const known = { key: keyOf(id), vmid: id, node: at, name, ip: address };
    vms.push({ ...base, ...known, role: 'replacement', power: 'running' });
  }
  return vms;
}

/** By the object or by what its workflow has published: whichever this worker saw first. */
export function isDeleting({ metadata, status }: Proxy): boolean {
  return metadata.deletionTimestamp !== undefined || status.phase === 'Deleting';
}

/** The reason of a condition, `null` when it is not there. */
export function conditionOf(
  { status }: Proxy,
  type: string,
): { status: string; reason: string; since: string } | null {
  const found = status.conditions.find((condition) => condition.type === type);
  if (found === undefined) return null;
  return { status: found.status, reason: found.reason, since: found.lastTransitionTime ?? '' };
}
