/** `ProxyRecords` over the Kubernetes API. */
import { hostname } from 'node:os';
import type { Logger } from 'pino';
import { z } from 'zod';
import { apiVersion, finalizer, kind, parseProxy, plural } from '../../api/proxy.ts';
import type { Proxy } from '../../api/proxy.ts';
import type { ProxyEvent, ProxyRef, ProxyStatus } from '../../workflows/contract/proxy.ts';
import { ProviderError, transient } from '../providerError.ts';
import type { KubernetesAnswer, KubernetesClient, KubernetesRequest } from './client.ts';
import { component, sendEvent } from './events.ts';
import type { Attempt } from './refusal.ts';
import { refused, unanswered } from './refusal.ts';
import type { ProxyRecords } from './records.ts';
import { readSecretKeys } from './secrets.ts';
import { statusPatch } from './statusPatch.ts';

/** A write meets a concurrent one (409) rarely; more conflicts in a row than this mean something else is wrong. */
const maxConflicts = 5;

const stored = z.looseObject({
  metadata: z.looseObject({
    uid: z.string(),
    resourceVersion: z.string(),
    creationTimestamp: z.string().optional(),
    deletionTimestamp: z.string().optional(),
    finalizers: z.array(z.string()).default([]),
  }),
  status: z.record(z.string(), z.unknown()).nullish(),
});
type Stored = z.output<typeof stored>;

/** What a write found: it was carried out, nothing had to be sent, or the object is gone. */
type Outcome = 'written' | 'unchanged' | 'gone';

/** Reads and writes Proxies; every read compares the UID, every patch carries UID and resourceVersion. */
export class KubernetesProxyRecords implements ProxyRecords {
  readonly #client: KubernetesClient;
  readonly #log: Logger;
  readonly #now: () => Date;
  readonly #onFirstReady: (seconds: number) => void;

  /** `onFirstReady` is told how long a Proxy took from its creation until it was Ready for the first time. */
  constructor(
    client: KubernetesClient,
    log: Logger,
    now: () => Date = () => new Date(),
    onFirstReady: (seconds: number) => void = () => undefined,
  ) {
    this.#client = client;
    this.#log = log;
    this.#now = now;
    this.#onFirstReady = onFirstReady;
  }

  async get(ref: ProxyRef): Promise<Proxy | null> {
    const found = await this.#read(ref);
    if (found === null) return null;
    try {
      return parseProxy(found);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      throw new ProviderError(
        'Transient',
        `${text}. Apply the CRDs of this version of the operator, or correct the object.`,
        { reason: 'Internal', scope: 'proxy' },
        error,
      );
    }
  }

  async addFinalizer(ref: ProxyRef): Promise<void> {
    // The API server takes no new finalizer on an object under deletion; nothing of ours exists for it yet.
    const outcome = await this.#write(ref, '', ({ metadata }) =>
      metadata.finalizers.includes(finalizer) || metadata.deletionTimestamp !== undefined
        ? null
        : { metadata: { finalizers: [...metadata.finalizers, finalizer] } },
    );
    if (outcome !== 'gone') return;
    throw new ProviderError('NotFound', `${describe(ref)} (UID ${ref.uid}) no longer exists.`, {
      reason: 'ObjectGone',
      scope: 'proxy',
    });
  }

  async removeFinalizer(ref: ProxyRef): Promise<boolean> {
    const outcome = await this.#write(ref, '', ({ metadata }) => {
      if (metadata.deletionTimestamp === undefined) throw notDeleted(ref);
      return metadata.finalizers.includes(finalizer)
        ? { metadata: { finalizers: metadata.finalizers.filter((name) => name !== finalizer) } }
        : null;
    });
    return outcome !== 'gone';
  }

  async publishStatus(ref: ProxyRef, status: ProxyStatus): Promise<boolean> {
    let readyForTheFirstTime: string | null = null;
    const outcome = await this.#write(ref, '/status', ({ metadata, status: before }) => {
      const first = status.everReady && before?.['everReady'] !== true;
      readyForTheFirstTime = first ? (metadata.creationTimestamp ?? null) : null;
      const patch = statusPatch(before ?? {}, status, this.#now());
      return patch === null ? null : { status: patch };
    });
    if (outcome === 'written' && readyForTheFirstTime !== null) {
      this.#onFirstReady((this.#now().getTime() - Date.parse(readyForTheFirstTime)) / 1_000);
    }
    return outcome !== 'gone';
  }

  async recordEvent(ref: ProxyRef, event: ProxyEvent): Promise<void> {
    const { reason, message } = event;
    const fields = { proxy: `${ref.namespace}/${ref.name}`, reason };
    const about = { kind, ...ref };
    try {
      if (await sendEvent(this.#client, about, event, hostname(), this.#now())) return;
      // What a force delete leaves on Proxmox, for one, is to be found somewhere.
      this.#log.info(
        { ...fields, note: message },
        'event not recorded, its namespace is being deleted',
      );
    } catch (error) {
      this.#log.warn({ ...fields, err: error }, 'event not recorded');
    }
  }

  async secretKey(namespace: string, name: string, key: string): Promise<Uint8Array> {
    const [value = Buffer.of()] = await readSecretKeys(this.#client, namespace, name, [key]);
    return value;
  }

  /** The object as stored; `null` when it is gone or another one has its name. */
  async #read(ref: ProxyRef): Promise<Stored | null> {
    const attempt: Attempt = { verb: 'get', object: describe(ref), rule: `${plural}: get` };
    const answer = await this.#send(attempt, { method: 'GET', path: pathOf(ref) });
    if (answer.status === 404 && isObjectMissing(answer)) return null;
    if (answer.status !== 200) throw refused(attempt, answer);
    const object = stored.parse(answer.body);
    return object.metadata.uid === ref.uid ? object : null;
  }

  /**
   * Read, change, write with UID and resourceVersion as preconditions; begun again when somebody else wrote meanwhile.
   * `change` returns the patch, or `null` when nothing is to be done. The version is the guard that counts: on the status
   * subresource the API server ignores a UID (tried on 1.35), and the version is that of the read whose UID was compared.
   */
  async #write(
    ref: ProxyRef,
    subresource: '' | '/status',
    change: (object: Stored) => { metadata?: object; status?: object } | null,
  ): Promise<Outcome> {
    const object = subresource === '' ? describe(ref) : `the status of ${describe(ref)}`;
    const attempt: Attempt = { verb: 'patch', object, rule: `${plural}${subresource}: patch` };
    for (let conflicts = 0; ; conflicts++) {
      const found = await this.#read(ref);
      if (found === null) return 'gone';
      const patch = change(found);
      if (patch === null) return 'unchanged';
      const { uid, resourceVersion } = found.metadata;
      const answer = await this.#send(attempt, {
        method: 'PATCH',
        path: pathOf(ref) + subresource,
        query: { fieldManager: component },
        body: { ...patch, metadata: { ...patch.metadata, uid, resourceVersion } },
      });
      if (answer.status < 300) return 'written';
      if (answer.status === 404 && isObjectMissing(answer)) return 'gone';
      if (answer.status !== 409 || conflicts === maxConflicts) throw refused(attempt, answer);
    }
  }

  async #send(attempt: Attempt, request: KubernetesRequest): Promise<KubernetesAnswer> {
    try {
      return await this.#client.send(request);
    } catch (error) {
      throw unanswered(attempt, error);
    }
  }
}

/** Path of all Proxies of all namespaces, for list and watch. */
export const allProxiesPath = `/apis/${apiVersion}/${plural}`;

function pathOf(ref: ProxyRef): string {
  const namespace = encodeURIComponent(ref.namespace);
  return `/apis/${apiVersion}/namespaces/${namespace}/${plural}/${encodeURIComponent(ref.name)}`;
}

function describe(ref: ProxyRef): string {
  return `Proxy ${ref.namespace}/${ref.name}`;
}

function notDeleted(ref: ProxyRef): ProviderError {
  const message = `${describe(ref)} (UID ${ref.uid}) keeps its finalizer: it is not being deleted`;
  return transient('StillWanted', message, { goBack: true });
}

const missingObject = z.object({ details: z.object({ name: z.string() }) });

/**
 * «This object does not exist», against «this kind does not exist» (CRD removed, or not served yet): both are 404, and only
 * the first names an object. Taking the second for the first would end every workflow while a CRD is being replaced.
 */
function isObjectMissing(answer: KubernetesAnswer): boolean {
  return missingObject.safeParse(answer.body).success;
}
