/** Which Proxies the discovery API shows, and how. Pure. */
import type { Proxy } from '../api/proxy.ts';
import type { Phase } from '../workflows/contract/proxy.ts';
import type { Requirement } from './selector.ts';
import { matches } from './selector.ts';

export interface EndpointQuery {
  /** `all`: whether ready or not. */
  ready: 'true' | 'false' | 'all';
  provider: string | null;
  namespace: string | null;
  selector: readonly Requirement[];
}

/** One proxy as clients see it. Credentials are never part of it. */
export interface Endpoint {
  namespace: string;
  name: string;
  /** `ip:port`, an IPv6 address in brackets. */
  address: string;
  ip: string;
  port: number;
  mode: 'Managed' | 'External';
  provider: string | null;
  ready: boolean;
  healthy: boolean | null;
  phase: Phase | null;
  labels: Record<string, string>;
}

/**
 * The endpoints that match, sorted by namespace and name, no address twice: of several Proxies that claim one, a ready one
 * wins, then the older. A Proxy under deletion is never shown: it leaves before its VM drains.
 */
export function endpointsOf(proxies: readonly Proxy[], query: EndpointQuery): Endpoint[] {
  const byAddress = new Map<string, { endpoint: Endpoint; proxy: Proxy }>();
  for (const proxy of proxies) {
    const endpoint = endpointOf(proxy);
    if (endpoint === null) continue;
    const rival = byAddress.get(endpoint.address);
    if (rival !== undefined && !goesBefore(endpoint, proxy, rival)) continue;
    byAddress.set(endpoint.address, { endpoint, proxy });
  }
  return [...byAddress.values()]
    .map(({ endpoint }) => endpoint)
    .filter((endpoint) => isWanted(endpoint, query))
    .sort((a, b) => compare(a.namespace, b.namespace) || compare(a.name, b.name));
}

/** One line per endpoint: `ip:port`. */
export function endpointLines(endpoints: readonly Endpoint[]): string {
  return endpoints.map(({ address }) => `${address}\n`).join('');
}

function endpointOf({ metadata, spec, status }: Proxy): Endpoint | null {
  if (metadata.deletionTimestamp !== undefined || status.phase === 'Deleting') return null;
  const { ip } = status;
  if (ip === null) return null;
  const host = ip.includes(':') ? `[${ip}]` : ip;
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    address: `${host}:${spec.port}`,
    ip,
    port: spec.port,
    mode: spec.mode,
    provider: spec.provider ?? null,
    ready: status.phase === 'Ready' && status.healthy === true,
    healthy: status.healthy,
    phase: status.phase,
    labels: metadata.labels,
  };
}

function goesBefore(
  endpoint: Endpoint,
  { metadata }: Proxy,
  rival: { endpoint: Endpoint; proxy: Proxy },
): boolean {
  if (endpoint.ready !== rival.endpoint.ready) return endpoint.ready;
  const created = metadata.creationTimestamp ?? '';
  const rivalCreated = rival.proxy.metadata.creationTimestamp ?? '';
  return compare(created, rivalCreated) < 0;
}

function isWanted(endpoint: Endpoint, query: EndpointQuery): boolean {
  if (query.ready !== 'all' && String(endpoint.ready) !== query.ready) return false;
  if (query.provider !== null && endpoint.provider !== query.provider) return false;
  if (query.namespace !== null && endpoint.namespace !== query.namespace) return false;
  return matches(query.selector, endpoint.labels);
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
