/** From what the Proxy cache sees to what the dispatcher carries. */
import type { Logger } from 'pino';
import type { Proxy } from '../api/proxy.ts';
import type { ProxyHandlers } from '../activities/kubernetes/proxyStore.ts';
import { decide, needsWorkflow, stillRemembered } from './decide.ts';
import type { Remembered } from './decide.ts';
import type { Desk, ProxyIdentity } from './desk.ts';
import type { Dispatcher } from './dispatch.ts';
import { dueForEnsure } from './resync.ts';

export interface WatcherOptions {
  desk: Desk;
  dispatcher: Dispatcher;
  log: Logger;
  now?: () => number;
}

/** Handlers for the cache. They enqueue only; the resync after a full list runs beside them. */
export function createWatcher({
  desk,
  dispatcher,
  log,
  now = Date.now,
}: WatcherOptions): ProxyHandlers {
  const proxies = new Map<string, Proxy>();
  const remembered = new Map<string, Remembered>();
  let resyncing = false;
  let resyncedMs = now();

  async function resync(): Promise<void> {
    const running = await desk.running().catch((error: unknown) => {
      log.debug({ err: error }, 'running workflows not listed');
      return null;
    });
    const uids = [...proxies.values()].filter(needsWorkflow).map(({ metadata }) => metadata.uid);
    const nowMs = now();
    const due = dueForEnsure(uids, running, resyncedMs, nowMs);
    resyncedMs = nowMs;
    for (const uid of due) {
      const proxy = proxies.get(uid);
      if (proxy !== undefined) dispatcher.submit({ kind: 'ensure', proxy: identityOf(proxy) });
    }
    log.debug({ proxies: uids.length, ensured: due.length }, 'proxy workflows resynced');
  }

  return {
    changed(proxy) {
      const { uid } = proxy.metadata;
      proxies.set(uid, proxy);
      const known = stillRemembered(proxy, remembered.get(uid));
      if (known === undefined) remembered.delete(uid);
      const decision = decide(proxy, known);
      if (decision.kind === 'nothing') return;
      remembered.set(uid, decision.remember);
      dispatcher.submit({ ...decision, proxy: identityOf(proxy) });
    },

    deleted(proxy) {
      const { uid, generation } = proxy.metadata;
      proxies.delete(uid);
      remembered.delete(uid);
      const news = { generation, deleting: true };
      dispatcher.submit({ kind: 'gone', proxy: identityOf(proxy), news });
    },

    listed() {
      if (resyncing) return;
      resyncing = true;
      void resync().finally(() => {
        resyncing = false;
      });
    },
  };
}

function identityOf({ metadata, spec }: Proxy): ProxyIdentity {
  const { namespace, name, uid } = metadata;
  return { ref: { namespace, name, uid }, provider: spec.provider ?? null };
}
