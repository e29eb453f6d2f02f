/**
 * List + watch of all Proxies that cannot die. client-node's informer stops for good at the first failure but 410, and a
 * watch whose connection went silent looks like one with nothing to tell: hence an idle timer, a bound on every watch,
 * and a full list every few minutes whatever the watch says (case 21).
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Proxy } from '../../api/proxy.ts';
import type { KubernetesClient } from './client.ts';
import { networkText } from './refusal.ts';
import { allProxiesPath } from './kubernetesRecords.ts';
import { listProxies, newestVersion, proxyPageSize } from './proxyList.ts';
import type { ProxyHandlers } from './proxyStore.ts';
import { isOlder, ProxyStore } from './proxyStore.ts';
import { linesOf, parseWatchEvent, WatchEnded } from './watchEvents.ts';
import { refusedWatch, WatchUseless } from './watchRefusal.ts';

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

const cachePace: CachePace = {
  pageSize: proxyPageSize,
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

/** So many useless watches in a row, and the list is taken each time: what watches do not tell, lists do. */
const uselessWatches = 3;

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
  /** Watches in a row that told nothing and ended at once. */
  #useless = 0;
  /** The watch of this cycle told something. */
  #delivered = false;
  /** The last watch ended by itself: is the version it got to still one? */
  #doubtful = false;
  #lastProblem = '';
  #lastListProblem = '';

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
      this.#delivered = false;
      const problem = await this.#cycle();
      if (signal.aborted) return;
      if (problem === null) {
        this.#failures = 0;
        continue;
      }
      // One that told something is worth opening again soon; it must not be opened at once, or it were a loop without a brake.
      this.#failures = this.#delivered ? 1 : this.#failures + 1;
      if (!(problem instanceof WatchUseless) || this.#failures >= uselessWatches) {
        this.#report(problem);
      }
      await delay(this.#pauseMs(), undefined, { signal }).catch(() => undefined);
    }
  }

  /** List if due, then one watch until it ends. Returns what went wrong, `null` for a normal end. */
  async #cycle(): Promise<unknown> {
    try {
      await this.#checkVersion();
      await this.#listIfDue();
      await this.#watchOnce();
      this.#useless = 0;
      return null;
    } catch (error) {
      this.#doubtful = true;
      // 410: our version is too old. 404: the kind went away, and with it all versions.
      if (error instanceof WatchEnded && error.expired) this.#resourceVersion = null;
      const useless = error instanceof WatchUseless && !this.#delivered;
      this.#useless = useless ? this.#useless + 1 : 0;
      return error;
    }
  }

  /**
   * A watch from a version that an API server has not reached yet is opened, and tells nothing until it has, no bookmark
   * either (tried on 1.35). That happens when its store was set back, which ends watches: so one that ended by itself is
   * not believed to go on before one small request has told that the version is not ahead.
   */
  async #checkVersion(): Promise<void> {
    if (this.#resourceVersion === null || !this.#doubtful) return;
    const newest = await newestVersion(this.#client);
    this.#doubtful = false;
    if (!isOlder(newest, this.#resourceVersion)) return;
    this.#sayWentBack(this.#resourceVersion, newest);
    this.#resourceVersion = null;
  }

  /** A list that fails does not keep from watching on, as long as there is a version to go on from. */
  async #listIfDue(): Promise<void> {
    const due = nowMs() >= this.#nextListMs || this.#useless >= uselessWatches;
    if (this.#resourceVersion !== null && !due) return;
    try {
      await this.#listAll();
    } catch (error) {
      if (this.#resourceVersion === null) throw error;
      this.#nextListMs = nowMs() + this.#pace.retryMaxMs;
      const text = networkText(error);
      if (text !== this.#lastListProblem) {
        this.#log.warn({ err: error }, 'proxies not listed, watched on');
      }
      this.#lastListProblem = text;
    }
  }

  async #listAll(): Promise<void> {
    const { objects, resourceVersion } = await listProxies(this.#client, this.#pace.pageSize);
    const before = this.#resourceVersion;
    if (before !== null && isOlder(resourceVersion, before)) {
      this.#sayWentBack(before, resourceVersion);
    }
    this.#store.replace(objects);
    this.#resourceVersion = resourceVersion;
    this.#doubtful = false;
    // Spread, so that replicas started together do not list together for ever.
    this.#nextListMs = nowMs() + this.#pace.fullListMs * (0.9 + Math.random() / 5);
    this.#lastListProblem = '';
    this.#alive();
  }

  /** Throws WatchUseless when it ended sooner than a watch does that works. */
  async #watchOnce(): Promise<void> {
    const startedMs = nowMs();
    const remainingMs = Math.max(0, this.#nextListMs - startedMs);
    await this.#watch(remainingMs);
    const lastedMs = nowMs() - startedMs;
    // One that was asked for a second only ends after a second.
    if (lastedMs >= Math.min(this.#pace.steadyMs, remainingMs)) return;
    throw new WatchUseless('the API server closes every watch right after it was opened');
  }

  async #watch(remainingMs: number): Promise<void> {
    const query = {
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: this.#resourceVersion ?? '',
      timeoutSeconds: String(Math.max(1, Math.ceil(remainingMs / 1_000))),
    };
    const silence = new AbortController();
    const idle = setTimeout(() => silence.abort(), this.#pace.idleMs);
    let listIsDue = false;
    // A server that keeps talking past timeoutSeconds must not put the next full list off.
    const overdue = setTimeout(() => {
      listIsDue = true;
      silence.abort();
    }, remainingMs + this.#pace.overdueMs);
    const signal = AbortSignal.any([silence.signal, this.#stopping.signal]);
    let opened = false;
    try {
      const { status, chunks } = await this.#client.stream(allProxiesPath, query, signal);
      if (status !== 200) throw await refusedWatch(status, chunks);
      opened = true;
      this.#alive();
      for await (const line of linesOf(chunks)) {
        idle.refresh();
        this.#take(line);
      }
      this.#doubtful = true;
    } catch (error) {
      if (!signal.aborted) throw error;
      if (!opened && !listIsDue)
        throw new Error('the watch was not opened in time', { cause: error });
    } finally {
      clearTimeout(idle);
      clearTimeout(overdue);
    }
  }

  #take(line: string): void {
    const event = parseWatchEvent(line);
    const { resourceVersion } = event.type === 'BOOKMARK' ? event : event.object.metadata;
    const before = this.#resourceVersion;
    const isBehind = before !== null && isOlder(resourceVersion, before);
    // Bookmarks only ever rise. One that does not comes from an API server whose store was set back: what it tells from
    // here on leaves out everything in between.
    if (event.type === 'BOOKMARK' && isBehind) {
      throw new WatchEnded(410, `its version went back from ${before} to ${resourceVersion}`);
    }
    this.#alive();
    this.#delivered = true;
    this.#store.apply(event);
    if (!isBehind) this.#resourceVersion = resourceVersion;
  }

  #alive(): void {
    this.#lastSyncMs = Date.now();
    if (this.#lastProblem === '') return;
    this.#lastProblem = '';
    this.#log.info({}, 'proxy watch is back');
  }

  #sayWentBack(before: string, resourceVersion: string): void {
    this.#log.warn({ before, resourceVersion }, 'kubernetes went back to an older state');
  }

  /** Once per kind of problem, not once per attempt. */
  #report(problem: unknown): void {
    const text = networkText(problem);
    if (text === this.#lastProblem) return;
    this.#lastProblem = text;
    this.#log.warn({ err: problem }, 'proxy watch failed');
  }

  #pauseMs(): number {
    const { retryFirstMs, retryMaxMs } = this.#pace;
    const baseMs = Math.min(retryMaxMs, retryFirstMs * 2 ** Math.min(this.#failures - 1, 20));
    return baseMs * (1 + Math.random() / 4);
  }
}

/** Monotonic: a clock that is set back must not put the next list off by as much. */
function nowMs(): number {
  return performance.now();
}
