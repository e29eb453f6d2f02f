/** `ProxyRecords` in memory: what the provider's steps read of Kubernetes. */
import { parseProxy, type Proxy } from '../../api/proxy.ts';
import type { ProxyRecords } from '../../activities/kubernetes/records.ts';
import type { TakeSurvey } from '../../activities/kubernetes/survey.ts';
import { transient } from '../../activities/providerError.ts';
import type { ProxyRef } from '../../workflows/contract/proxy.ts';
import { aRef } from './aPlan.ts';

export interface MemoryRecords extends ProxyRecords {
  survey: TakeSurvey;
  /** resourceVersion that the next surveys answer with. */
  version: string;
  put(proxy: Proxy): void;
  remove(ref: ProxyRef): void;
  /** As `kubectl delete` of an object with a finalizer. */
  markDeleting(ref: ProxyRef): void;
  secrets: Map<string, Uint8Array>;
}

/** A Managed Proxy; `spec` and `metadata` add to or replace what is there. */
export function aProxy(
  fields: { spec?: Record<string, unknown>; metadata?: Record<string, unknown> } = {},
): Proxy {
  return parseProxy({
    metadata: { ...aRef(), generation: 1, resourceVersion: '1', ...fields.metadata },
    spec: {
      provider: 'pve',
      placement: { machineType: 'small', image: 'debian-13' },
      cloudInit: '#cloud-config\n',
      ...fields.spec,
    },
  });
}

export function memoryRecords(): MemoryRecords {
  const proxies = new Map<string, Proxy>();
  const secrets = new Map<string, Uint8Array>();
  const get = (ref: ProxyRef): Proxy | null => proxies.get(ref.uid) ?? null;
  const notHere = (): never => {
    throw new Error('not part of the provider steps');
  };
  const records: MemoryRecords = {
    secrets,
    version: '1000',
    survey: () =>
      Promise.resolve({
        version: records.version,
        proxies: [...proxies.values()].map(({ metadata, status }) => {
          const { namespace, name, uid } = metadata;
          return { ref: { namespace, name, uid }, leftovers: status.leftovers };
        }),
      }),
    put: (proxy) => void proxies.set(proxy.metadata.uid, proxy),
    remove: (ref) => void proxies.delete(ref.uid),
    markDeleting: (ref) => {
      const proxy = get(ref);
      if (proxy === null) throw new Error(`no Proxy ${ref.name}`);
      const deletionTimestamp = new Date().toISOString();
      proxies.set(ref.uid, { ...proxy, metadata: { ...proxy.metadata, deletionTimestamp } });
    },
    get: (ref) => Promise.resolve(get(ref)),
    secretKey: (namespace, name, key) => {
      const content = secrets.get(`${namespace}/${name}/${key}`);
      if (content !== undefined) return Promise.resolve(content);
      const message = `Secret ${namespace}/${name} has no ${key}`;
      return Promise.reject(transient('CloudInitUnavailable', message));
    },
    addFinalizer: notHere,
    removeFinalizer: notHere,
    publishStatus: notHere,
    recordEvent: notHere,
  };
  return records;
}
