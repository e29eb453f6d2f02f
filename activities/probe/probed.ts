/** Which addresses a Proxy wants probed, and how. Pure. */
import type { Proxy } from '../../api/proxy.ts';
import { proxyWorkflowId } from '../../workflows/contract/messages.ts';
import { fnv1a32 } from '../vm/identity.ts';
import type { Thresholds } from './verdict.ts';

/** An address to probe, and how. */
export interface ProbedAddress {
  /** `<uid>|<ip>:<port>`: a changed address starts from nothing. */
  key: string;
  /** Its own moment in every interval, 0 ≤ x < 1: spread evenly over the Proxies. */
  share: number;
  uid: string;
  workflowId: string;
  namespace: string;
  name: string;
  /** The VM that serves, or the one that is to take over. */
  role: 'serving' | 'replacement';
  ip: string;
  port: number;
  url: string;
  intervalMs: number;
  timeoutMs: number;
  thresholds: Thresholds;
  expectedStatuses: readonly number[] | null;
  /** Name of the Secret with the proxy's credentials. */
  authSecret: string | null;
  /** What the status says; `null` for a replacement. */
  published: boolean | null;
}

/** Whether a probe as `after` wants it could end otherwise than one as `before` wanted it: its result is not waited for an interval. */
export function isProbedOtherwise(before: ProbedAddress, after: ProbedAddress): boolean {
  return (
    before.url !== after.url ||
    before.intervalMs !== after.intervalMs ||
    before.timeoutMs !== after.timeoutMs ||
    before.authSecret !== after.authSecret ||
    String(before.expectedStatuses) !== String(after.expectedStatuses)
  );
}

/** None for a Proxy under deletion: it serves nobody any more. */
export function probedOf(proxy: Proxy, defaultUrl: string): ProbedAddress[] {
  const { metadata, spec, status } = proxy;
  if (metadata.deletionTimestamp !== undefined || status.phase === 'Deleting') return [];
  const { healthCheck } = spec;
  const common = {
    uid: metadata.uid,
    workflowId: proxyWorkflowId(metadata.uid),
    namespace: metadata.namespace,
    name: metadata.name,
    port: spec.port,
    url: healthCheck.url ?? defaultUrl,
    intervalMs: healthCheck.intervalSeconds * 1_000,
    timeoutMs: healthCheck.timeoutSeconds * 1_000,
    thresholds: { failure: healthCheck.failureThreshold, success: healthCheck.successThreshold },
    expectedStatuses: healthCheck.expectedStatuses ?? null,
    authSecret: spec.auth?.secretRef.name ?? null,
  };
  const placeOf = (ip: string): Pick<ProbedAddress, 'key' | 'share'> => {
    const key = `${metadata.uid}|${ip}:${spec.port}`;
    return { key, share: fnv1a32(key) / 2 ** 32 };
  };
  const probed: ProbedAddress[] = [];
  const { ip } = status;
  if (ip !== null) {
    probed.push({ ...common, ...placeOf(ip), role: 'serving', ip, published: status.healthy });
  }
  const next = status.replacement?.ip ?? null;
  if (next !== null && next !== ip) {
    probed.push({ ...common, ...placeOf(next), role: 'replacement', ip: next, published: null });
  }
  return probed;
}
