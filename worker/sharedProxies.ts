/** One cache of Proxies for all watchers of a process: a list of thousands is kept, and watched, once. */
import type { Logger } from 'pino';
import type { Proxy } from '../api/proxy.ts';
import type { KubernetesClient } from '../activities/kubernetes/client.ts';
import { ProxyCache } from '../activities/kubernetes/proxyCache.ts';
import type { ProxyHandlers } from '../activities/kubernetes/proxyStore.ts';

export interface SharedView {
  list(): readonly Proxy[];
  synced(): boolean;
  stop(): Promise<void>;
}

/** The cache runs while at least one view of it is open. */
export function sharedProxies(
  client: KubernetesClient,
  log: Logger,
): (handlers: ProxyHandlers) => SharedView {
  const views = new Set<ProxyHandlers>();
  let cache: ProxyCache | null = null;
  const all: ProxyHandlers = {
    changed: (proxy, previous) => {
      for (const view of views) view.changed?.(proxy, previous);
    },
    deleted: (proxy) => {
      for (const view of views) view.deleted?.(proxy);
    },
    listed: () => {
      for (const view of views) view.listed?.();
    },
  };
  return (handlers) => {
    const shared = cache ?? new ProxyCache({ client, log, handlers: all });
    cache = shared;
    const view = { ...handlers };
    views.add(view);
    return {
      list: () => shared.list(),
      synced: () => shared.synced(),
      stop: async () => {
        views.delete(view);
        if (views.size > 0 || cache !== shared) return;
        cache = null;
        await shared.stop();
      },
    };
  };
}
