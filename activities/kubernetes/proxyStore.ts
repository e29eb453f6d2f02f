/** What the cache holds: the newest known version of every Proxy, by UID. No I/O. */
import type { Logger } from 'pino';
import { parseProxy } from '../../api/proxy.ts';
import type { Proxy } from '../../api/proxy.ts';
import type { Identified, WatchEvent } from './watchEvents.ts';

/** Called in order of arrival. They are expected to be short and to enqueue only; a throw is logged and goes no further. */
export interface ProxyHandlers {
  /** A new object (`previous` is null) or a newer version of a known one. */
  changed?(proxy: Proxy, previous: Proxy | null): void;
  /** The object is gone; `proxy` is its last known version. */
  deleted?(proxy: Proxy): void;
  /** A full list was taken in: everything known is as the API server has it. */
  listed?(): void;
}

const lastAppliedAnnotation = 'kubectl.kubernetes.io/last-applied-configuration';

/** Tells its handlers of each change once, however late or doubled the news about it come. */
export class ProxyStore {
  readonly #proxies = new Map<string, Proxy>();
  /** Deleted since the last list, with the version of the deletion: a late event must not bring them back. */
  readonly #gone = new Map<string, string>();
  readonly #unreadable = new Map<string, string>();
  readonly #handlers: ProxyHandlers;
  readonly #log: Logger;

  constructor(handlers: ProxyHandlers, log: Logger) {
    this.#handlers = handlers;
    this.#log = log;
  }

  list(): Proxy[] {
    return [...this.#proxies.values()];
  }

  get(uid: string): Proxy | undefined {
    return this.#proxies.get(uid);
  }

  /** Takes a full list as the truth, also where it is older than what was known (a restored etcd). */
  replace(objects: readonly Identified[]): void {
    this.#gone.clear();
    const listed = new Set(objects.map(({ metadata }) => metadata.uid));
    for (const uid of this.#unreadable.keys()) if (!listed.has(uid)) this.#unreadable.delete(uid);
    for (const uid of this.#proxies.keys()) if (!listed.has(uid)) this.#remove(uid);
    for (const object of objects) this.#put(object);
    this.#call(() => this.#handlers.listed?.());
  }

  /** Takes in one change of the watch; a version not newer than the known one is ignored (case 21 e). */
  apply(event: WatchEvent): void {
    if (event.type === 'BOOKMARK') return;
    const { uid, resourceVersion } = event.object.metadata;
    const known = this.#proxies.get(uid)?.metadata.resourceVersion ?? this.#gone.get(uid);
    if (known !== undefined && !isNewer(resourceVersion, known)) return;
    if (event.type !== 'DELETED') return this.#put(event.object);
    this.#gone.set(uid, resourceVersion);
    this.#remove(uid);
  }

  #put(object: Identified): void {
    const { uid, resourceVersion } = object.metadata;
    const previous = this.#proxies.get(uid) ?? null;
    if (previous?.metadata.resourceVersion === resourceVersion) return;
    const proxy = this.#parse(object);
    if (proxy === null) return;
    this.#proxies.set(uid, proxy);
    this.#call(() => this.#handlers.changed?.(proxy, previous));
  }

  #remove(uid: string): void {
    this.#unreadable.delete(uid);
    const proxy = this.#proxies.get(uid);
    if (proxy === undefined) return;
    this.#proxies.delete(uid);
    this.#call(() => this.#handlers.deleted?.(proxy));
  }

  /** An object that cannot be read is left as it was last known: neither new nor deleted. */
  #parse(object: Identified): Proxy | null {
    const { uid, resourceVersion } = object.metadata;
    try {
      const proxy = parseProxy(object);
      this.#unreadable.delete(uid);
      // Up to 256 KiB each, and nobody who reads the cache needs it; kubectl keeps a copy of the whole object.
      delete proxy.spec.cloudInit;
      delete proxy.metadata.annotations[lastAppliedAnnotation];
      return proxy;
    } catch (error) {
      if (this.#unreadable.get(uid) !== resourceVersion) {
        this.#unreadable.set(uid, resourceVersion);
        this.#log.warn({ err: error, uid }, 'proxy object not readable, left as it was');
      }
      return null;
    }
  }

  #call(handler: () => void): void {
    try {
      handler();
    } catch (error) {
      this.#log.error({ err: error }, 'proxy cache handler failed');
    }
  }
}

/** Versions of one kind are comparable numbers (Kubernetes 1.35); anything else is taken as newer. */
function isNewer(version: string, than: string): boolean {
  const numbers = /^\d+$/;
  if (!numbers.test(version) || !numbers.test(than)) return version !== than;
  return BigInt(version) > BigInt(than);
}

/** Both are numbers and the first is the smaller: without them nothing can be said. */
export function isOlder(version: string, than: string): boolean {
  const numbers = /^\d+$/;
  return numbers.test(version) && numbers.test(than) && BigInt(version) < BigInt(than);
}
