/** ProviderHealth objects: read, changed and removed. The operator is their only writer. */
import { hostname } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { apiVersion } from '../../api/proxy.ts';
import {
  providerHealthKind,
  providerHealthPlural,
  providerHealthStatusSchema,
  type ProviderHealthStatus,
} from '../../api/providerHealth.ts';
import type { ProxyEvent } from '../../workflows/contract/proxy.ts';
import type { KubernetesAnswer, KubernetesClient, KubernetesRequest } from './client.ts';
import { component, sendEvent } from './events.ts';
import { refused, unanswered, type Attempt } from './refusal.ts';

export interface ProviderHealthRecords {
  /** Every object, by name. Throws Transient `KubernetesUnavailable`, as all of these. */
  list(): Promise<Map<string, ProviderHealthStatus>>;
  /** What the object says; an empty status when there is none. */
  get(provider: string): Promise<ProviderHealthStatus>;
  /** Writes `change` of the newest status; makes the object when there is none. Sends nothing when nothing differs. */
  update(
    provider: string,
    change: (status: ProviderHealthStatus) => ProviderHealthStatus,
  ): Promise<void>;
  /** Done as well when there is none. */
  remove(provider: string): Promise<void>;
  /** An Event about the object; without one there is none. */
  recordEvent(provider: string, event: ProxyEvent): Promise<void>;
}

/** Several workers may write the same object at once, each another part of it. */
const maxConflicts = 5;
const collection = `/apis/${apiVersion}/${providerHealthPlural}`;

const stored = z.object({
  metadata: z.object({ name: z.string(), uid: z.string(), resourceVersion: z.string() }),
  // What an older release wrote is replaced, not complained about.
  status: providerHealthStatusSchema
    .catch(() => providerHealthStatusSchema.parse({}))
    .default(() => providerHealthStatusSchema.parse({})),
});
type Stored = z.output<typeof stored>;

/** Over the Kubernetes API; every write carries the resourceVersion it was made from. */
export class KubernetesHealthRecords implements ProviderHealthRecords {
  readonly #client: KubernetesClient;

  constructor(client: KubernetesClient) {
    this.#client = client;
  }

  async list(): Promise<Map<string, ProviderHealthStatus>> {
    const attempt = attemptOf('list', 'ProviderHealth objects');
    const answer = await this.#send(attempt, { method: 'GET', path: collection });
    if (answer.status !== 200) throw refused(attempt, answer);
    const { items } = z.object({ items: z.array(stored) }).parse(answer.body);
    return new Map(items.map(({ metadata, status }) => [metadata.name, status]));
  }

  async get(provider: string): Promise<ProviderHealthStatus> {
    return (await this.#read(provider))?.status ?? providerHealthStatusSchema.parse({});
  }

  async update(
    provider: string,
    change: (status: ProviderHealthStatus) => ProviderHealthStatus,
  ): Promise<void> {
    const attempt = attemptOf('patch', `the status of ${describe(provider)}`, '/status');
    for (let conflicts = 0; ; conflicts++) {
      const found = (await this.#read(provider)) ?? (await this.#create(provider));
      // Somebody else made it, or removed it, in between.
      if (found !== null) {
        const status = change(found.status);
        if (isDeepStrictEqual(status, found.status)) return;
        const { resourceVersion } = found.metadata;
        const answer = await this.#send(attempt, {
          method: 'PATCH',
          path: `${pathOf(provider)}/status`,
          query: { fieldManager: component },
          body: { metadata: { resourceVersion }, status: ownPart(status) },
        });
        if (answer.status < 300) return;
        if ((answer.status !== 409 && answer.status !== 404) || conflicts === maxConflicts) {
          throw refused(attempt, answer);
        }
      }
      if (conflicts === maxConflicts) throw refused(attempt, { status: 409, body: '' });
    }
  }

  async remove(provider: string): Promise<void> {
    const attempt = attemptOf('delete', describe(provider));
    const answer = await this.#send(attempt, { method: 'DELETE', path: pathOf(provider) });
    if (answer.status >= 300 && answer.status !== 404) throw refused(attempt, answer);
  }

  async recordEvent(provider: string, event: ProxyEvent): Promise<void> {
    const found = await this.#read(provider);
    if (found === null) return;
    const { name, uid } = found.metadata;
    const about = { kind: providerHealthKind, namespace: null, name, uid };
    await sendEvent(this.#client, about, event, hostname(), new Date());
  }

  async #read(provider: string): Promise<Stored | null> {
    const attempt = attemptOf('get', describe(provider));
    const answer = await this.#send(attempt, { method: 'GET', path: pathOf(provider) });
    if (answer.status === 404) return null;
    if (answer.status !== 200) throw refused(attempt, answer);
    return stored.parse(answer.body);
  }

  async #create(provider: string): Promise<Stored | null> {
    const attempt = attemptOf('create', describe(provider));
    const answer = await this.#send(attempt, {
      method: 'POST',
      path: collection,
      query: { fieldManager: component },
      body: { apiVersion, kind: providerHealthKind, metadata: { name: provider } },
    });
    if (answer.status === 409) return null;
    if (answer.status >= 300) throw refused(attempt, answer);
    return stored.parse(answer.body);
  }

  async #send(attempt: Attempt, request: KubernetesRequest): Promise<KubernetesAnswer> {
    try {
      return await this.#client.send(request);
    } catch (error) {
      throw unanswered(attempt, error);
    }
  }
}

/** Alarm and orphans have writers of their own: not sent, they stay as they are, also when they cannot be read here. */
function ownPart({ alarm: _alarm, orphans: _orphans, ...status }: ProviderHealthStatus): object {
  return { ...status, ...listsOf(status) };
}

/** Merge patches replace lists whole, and in a list `null` is no absent key but a value that the CRD refuses. */
function listsOf({
  targets,
  conditions,
}: Pick<ProviderHealthStatus, 'targets' | 'conditions'>): object {
  return { targets: targets.map(withoutNulls), conditions: conditions.map(withoutNulls) };
}

function withoutNulls(item: object): object {
  return Object.fromEntries(Object.entries(item).filter(([, value]) => value !== null));
}

function attemptOf(verb: Attempt['verb'], object: string, subresource = ''): Attempt {
  return { verb, object, rule: `${providerHealthPlural}${subresource}: ${verb}` };
}

function describe(provider: string): string {
  return `ProviderHealth ${provider}`;
}

function pathOf(provider: string): string {
  return `${collection}/${encodeURIComponent(provider)}`;
}
