/**
 * List + watch of all Proxies that cannot die. client-node's informer stops for good at the first failure but 410, and a
 * watch whose connection went silent looks like one with nothing to tell: hence an idle timer, a bound on every watch,
 * and a full list every few minutes whatever the watch says (case 21).
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { Proxy } from '../../api/proxy.ts';
import type { KubernetesClient } from './client.ts';
import { networkText, refused } from './failure.ts';
import { allProxiesPath } from './kubernetesRecords.ts';
import type { ProxyHandlers } from './proxyStore.ts';
import { ProxyStore } from './proxyStore.ts';
import { identitySchema, linesOf, parseWatchEvent, WatchEnded } from './watchEvents.ts';
import type { Identified } from './watchEvents.ts';

export interface CachePace {
  /** Objects per page of a list. */
  pageSize: number;
  /** Silence after which a watch is taken for dead and opened again. Bookmarks come about once a minute. */
  idleMs: number;
  /** Time between full lists. */
  fullListMs: number;
  /** What a watch may last beyond the next full list before it is cut off from this side. */
  overdueMs: number;
  /** A watch that ended sooner than this failed, however politely it was closed. */
  steadyMs: number;
  /** Pause after the first failure in a row; doubled up to the maximum, plus up to a quarter at random. */
  retryFirstMs: number;
  retryMaxMs: number;
}

export const cachePace: CachePace = {
  pageSize: 500,
  idleMs: 30_000,
  fullListMs: 300_000,
  overdueMs: 5_000,
  steadyMs: 10_000,
  retryFirstMs: 1_000,
  retryMaxMs: 30_000,
};

export interface ProxyCacheOptions {
  client: KubernetesClient;
  log: Logger;
  handlers?: ProxyHandlers;
  pace?: Partial<CachePace>;
}

const listBody = z.object({
  metadata: z.object({ resourceVersion: z.string(), continue: z.string().optional() }),
  items: z.array(identitySchema),
});
const listAttempt = {
  verb: 'list',
  object: 'the Proxies of all namespaces',
  rule: 'proxies: get, list, watch',
} as const;

/** All Proxies as the API server has them, without `spec.cloudInit`. Starts at once; `stop` ends it. */
export class ProxyCache {
  readonly #client: KubernetesClient;
  readonly #log: Logger;
  readonly #pace: CachePace;
  readonly #store: ProxyStore;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  #resourceVersion: string | null = null;
  #nextListMs = 0;
  #lastSyncMs: number | null = null;
  #failures = 0;
  #lastProblem = '';

  constructor({ client, log, handlers = {}, pace = {} }: ProxyCacheOptions) {
    this.#client = client;
    this.#log = log;
    this.#pace = { ...cachePace, ...pace };
    this.#store = new ProxyStore(handlers, log);
    this.#running = this.#run();
  }

  list(): Proxy[] {
    return this.#store.list();
  }
  get(uid: string): Proxy | undefined {
    return this.#store.get(uid);
  }
  /** A full list has been taken in since the start. */
  synced(): boolean {
    return this.#lastSyncMs !== null;
  }
  /** Epoch ms of the last sign of life of the API server (list, event, bookmark); `null` before the first list. */
  lastSyncMs(): number | null {
    return this.#lastSyncMs;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    // The first tick belongs to the constructor's caller: handlers may refer to the cache.
    await Promise.resolve();
    while (!signal.aborted) {
      const startedMs = Date.now();
      const problem = await this.#cycle();
      if (signal.aborted) return;
      const steady = problem === null && Date.now() - startedMs >= this.#pace.steadyMs;
      this.#failures = steady ? 0 : this.#failures + 1;
      if (problem !== null) this.#report(problem);
      if (steady) continue;
      await delay(this.#pauseMs(), undefined, { signal }).catch(() => undefined);
    }
  }

  /** List if due, then one watch until it ends. Returns what went wrong, `null` for a normal end. */
  async #cycle(): Promise<unknown> {
    try {
      if (this.#resourceVersion === null || Date.now() >= this.#nextListMs) await this.#listAll();
      await this.#watch();
      return null;
    } catch (error) {
      // 410: our version is too old. 404: the kind went away, and with it all versions.
      if (error instanceof WatchEnded && error.expired) this.#resourceVersion = null;
      return error;
    }
  }

  async #listAll(): Promise<void> {
    const objects: Identified[] = [];
    let page: z.output<typeof listBody> | undefined;
    do {
      const token = page?.metadata.continue;
      const query = {
        limit: String(this.#pace.pageSize),
        ...(token === undefined ? {} : { continue: token }),
      };
      const answer = await this.#client.send({ method: 'GET', path: allProxiesPath, query });
      if (answer.status !== 200) throw refused(listAttempt, answer);
      page = listBody.parse(answer.body);
      objects.push(...page.items);
    } while (page.metadata.continue !== undefined && page.metadata.continue !== '');
    this.#store.replace(objects);
    this.#resourceVersion = page.metadata.resourceVersion;
    this.#nextListMs = Date.now() + this.#pace.fullListMs;
    this.#alive();
  }

  async #watch(): Promise<void> {
    const remainingMs = Math.max(0, this.#nextListMs - Date.now());
    const query = {
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: this.#resourceVersion ?? '',
      timeoutSeconds: String(Math.max(1, Math.ceil(remainingMs / 1_000))),
    };
    const silence = new AbortController();
    const idle = setTimeout(() => silence.abort(), this.#pace.idleMs);
    // A server that keeps talking past timeoutSeconds must not put the next full list off.
    const overdue = setTimeout(() => silence.abort(), remainingMs + this.#pace.overdueMs);
    const signal = AbortSignal.any([silence.signal, this.#stopping.signal]);
    try {
      const { status, chunks } = await this.#client.stream(allProxiesPath, query, signal);
      if (status !== 200) throw await refusedWatch(status, chunks);
      this.#alive();
      for await (const line of linesOf(chunks)) {
        idle.refresh();
        this.#take(line);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      clearTimeout(idle);
      clearTimeout(overdue);
    }
  }

  #take(line: string): void {
    const event = parseWatchEvent(line);
    this.#alive();
    this.#store.apply(event);
    this.#resourceVersion =
      event.type === 'BOOKMARK' ? event.resourceVersion : event.object.metadata.resourceVersion;
  }

  #alive(): void {
    this.#lastSyncMs = Date.now();
    if (this.#lastProblem === '') return;
    this.#lastProblem = '';
    this.#log.info({}, 'proxy watch is back');
  }

  /** Once per kind of problem, not once per attempt. */
  #report(problem: unknown): void {
    const text = networkText(problem);
    if (text === this.#lastProblem) return;
    this.#lastProblem = text;
    this.#log.warn({ err: problem, retryInMs: this.#pace.retryFirstMs }, 'proxy watch failed');
  }

  #pauseMs(): number {
    const { retryFirstMs, retryMaxMs } = this.#pace;
    const baseMs = Math.min(retryMaxMs, retryFirstMs * 2 ** Math.min(this.#failures - 1, 20));
    return baseMs * (1 + Math.random() / 4);
  }
}

async function refusedWatch(status: number, chunks: AsyncIterable<Uint8Array>): Promise<Error> {
  let body = '';
  for await (const line of linesOf(chunks)) body += line;
  if (status === 410 || status === 404) return new WatchEnded(410, `HTTP ${status}`);
  return refused({ ...listAttempt, object: `${listAttempt.object} (watch)` }, { status, body });
}
