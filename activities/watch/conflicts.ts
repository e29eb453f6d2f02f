/** Two Proxies with one ip:port (design §7): who keeps it. Pure. */
import type { Proxy } from '../../api/proxy.ts';
import { conditionOf, isDeleting, type WatchedVm } from './watched.ts';

/** Proxies of all providers that claim one ip:port, at least two. */
export function contestedAddresses(proxies: readonly Proxy[]): Proxy[][] {
  const claims = new Map<string, Proxy[]>();
  for (const proxy of proxies) {
    const { ip } = proxy.status;
    if (ip === null || isDeleting(proxy)) continue;
    const key = `${ip}|${proxy.spec.port}`;
    claims.set(key, [...(claims.get(key) ?? []), proxy]);
  }
  return [...claims.values()].filter((claimants) => claimants.length > 1);
}

/**
 * The Proxy that keeps the address: the one whose VM reports it, where exactly one does; else the one that has been
 * Ready for longest, else the older object. `reports`: what the guests' agents said, `null` for no answer.
 */
export function keeperOf(
  claimants: readonly Proxy[],
  reports: ReadonlyMap<string, boolean | null>,
): Proxy | undefined {
  const reporting = claimants.filter(({ metadata }) => reports.get(metadata.uid) === true);
  const candidates = reporting.length > 0 ? reporting : claimants;
  return candidates.toSorted((left, right) => compare(seniority(left), seniority(right)))[0];
}

/** Sorts Ready ones first, longest Ready first, then by age. */
function seniority(proxy: Proxy): string {
  const ready = conditionOf(proxy, 'Ready');
  const since = ready?.status === 'True' ? `0 ${ready.since}` : '1';
  return `${since} ${proxy.metadata.creationTimestamp ?? ''} ${proxy.metadata.uid}`;
}

function compare(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/** What a Proxy is to be told: who has its address, or that nobody disputes it any more; `null`: it knows. */
export function conflictNews(
  { proxy }: WatchedVm,
  heldBy: string | null,
): { heldBy: string | null } | null {
  const shown = conditionOf(proxy, 'Ready')?.reason === 'AddressConflict';
  return shown === (heldBy !== null) ? null : { heldBy };
}
