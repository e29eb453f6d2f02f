/** One Proxy object in memory with all that steps do to it: finalizer, status, Events, and faults of Kubernetes. */
import { finalizer, parseProxy, type Proxy } from '../../../api/proxy.ts';
import type { ProxyRecords } from '../../../activities/kubernetes/records.ts';
import { ProviderError, transient } from '../../../activities/providerError.ts';
import type { ProxyEvent, ProxyRef, ProxyStatus } from '../../../workflows/contract/proxy.ts';

/** What Kubernetes answers instead; `after` has done what was asked first. */
export interface KubernetesFault {
  message: string;
  when: 'before' | 'after';
}

export interface ObjectRecords extends ProxyRecords {
  /** The object, or null once it is gone. */
  readonly object: Proxy | null;
  /** Everything ever published, oldest first. */
  readonly statuses: ProxyStatus[];
  readonly events: ProxyEvent[];
  /** As `kubectl patch` of the spec. */
  change(spec: Record<string, unknown>): void;
  /** As `kubectl delete`. */
  delete(): void;
  /** Consulted by every call with its name; a fault makes it fail. */
  faultFor: (call: keyof ProxyRecords) => KubernetesFault | undefined;
  /** Told of every status that was written. */
  published: (status: ProxyStatus) => void;
}

/** `spec` as a user wrote it. */
export function objectRecords(ref: ProxyRef, spec: Record<string, unknown>): ObjectRecords {
  let wanted = spec;
  let object: Proxy | null = parseProxy({
    metadata: { ...ref, generation: 1, resourceVersion: '1' },
    spec,
  });
  const statuses: ProxyStatus[] = [];
  const events: ProxyEvent[] = [];

  function update(changes: { metadata?: object; status?: object }): void {
    if (object === null) throw new Error(`Proxy ${ref.name} is gone`);
    const { metadata, status } = object;
    object = parseProxy({
      metadata: { ...metadata, ...changes.metadata },
      spec: wanted,
      status: { ...status, ...changes.status },
    });
    const { deletionTimestamp, finalizers } = object.metadata;
    if (deletionTimestamp !== undefined && finalizers.length === 0) object = null;
  }

  async function call<T>(name: keyof ProxyRecords, act: () => T): Promise<T> {
    await Promise.resolve();
    const fault = records.faultFor(name);
    if (fault?.when === 'before') throw unavailable(fault);
    const result = act();
    if (fault !== undefined) throw unavailable(fault);
    return result;
  }

  const records: ObjectRecords = {
    get object() {
      return object;
    },
    statuses,
    events,
    faultFor: () => undefined,
    published: () => undefined,
    change: (changes) => {
      wanted = { ...wanted, ...changes };
      update({ metadata: { generation: (object?.metadata.generation ?? 0) + 1 } });
    },
    delete: () => {
      update({ metadata: { deletionTimestamp: new Date().toISOString() } });
    },
    get: () => call('get', () => object),
    addFinalizer: () =>
      call('addFinalizer', () => {
        if (object === null) {
          const facts = { reason: 'ObjectGone', scope: 'proxy' } as const;
          throw new ProviderError('NotFound', `Proxy ${ref.name} is gone`, facts);
        }
        const { deletionTimestamp, finalizers } = object.metadata;
        if (deletionTimestamp !== undefined || finalizers.includes(finalizer)) return;
        update({ metadata: { finalizers: [...finalizers, finalizer] } });
      }),
    removeFinalizer: () =>
      call('removeFinalizer', () => {
        if (object === null) return false;
        if (object.metadata.deletionTimestamp === undefined) {
          throw transient('StillWanted', `Proxy ${ref.name} is not being deleted`, {
            goBack: true,
          });
        }
        const finalizers = object.metadata.finalizers.filter((name) => name !== finalizer);
        update({ metadata: { finalizers } });
        return true;
      }),
    publishStatus: (_ref, status) =>
      call('publishStatus', () => {
        if (object === null) return false;
        update({ status });
        statuses.push(structuredClone(status));
        records.published(status);
        return true;
      }),
    recordEvent: (_ref, event) => {
      events.push(event);
      return Promise.resolve();
    },
    secretKey: () => {
      throw new Error('the matrix has its cloud-init inline');
    },
  };
  return records;
}

function unavailable({ message }: KubernetesFault): Error {
  return transient('KubernetesUnavailable', message);
}
