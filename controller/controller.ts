/** The controller put together: watch Proxies, tell Temporal, serve discovery. Holds no state that a restart would miss. */
import type { Logger } from 'pino';
import type { KubernetesClient } from '../activities/kubernetes/client.ts';
import { ProxyCache } from '../activities/kubernetes/proxyCache.ts';
import type { CachePace } from '../activities/kubernetes/proxyCache.ts';
import { listen, startHealthServer, startMetricsServer } from '../worker/runtime/health.ts';
import type { Listening } from '../worker/runtime/health.ts';
import type { Desk, DeskState } from './desk.ts';
import { createDiscovery } from './discovery.ts';
import { Dispatcher } from './dispatch.ts';
import { createControllerMetrics } from './metrics.ts';
import { createWatcher } from './watcher.ts';

export interface ControllerOptions {
  kubernetes: KubernetesClient;
  desk: Desk;
  log: Logger;
  host: string;
  ports: { metrics: number; health: number; discovery: number };
  pace?: Partial<CachePace>;
}

export interface Controller {
  ports: { metrics: number; health: number; discovery: number };
  /** Not ready any more, then: no new requests, no new events, no new calls; each part finishes what it has begun. */
  stop(): Promise<void>;
}

/** Between two looks at Temporal while it is up, and while it is not: a start, or its return, shows at once. */
const deskStateMs = { up: 15_000, otherwise: 1_000 };

/** Starts everything; throws one sentence when a port is occupied. */
export async function startController(options: ControllerOptions): Promise<Controller> {
  const { kubernetes, desk, log, host, ports, pace } = options;
  let stopping = false;
  let ready = false;
  let deskState: DeskState = 'down';
  const dispatcher = new Dispatcher({ desk, log });
  const watcher = createWatcher({ desk, dispatcher, log });
  const cache = new ProxyCache({
    client: kubernetes,
    log,
    pace: pace ?? {},
    handlers: {
      ...watcher,
      listed() {
        if (!ready) log.info({ proxies: cache.list().length }, 'ready');
        ready = true;
        watcher.listed?.();
      },
    },
  });
  let asking: NodeJS.Timeout | undefined;
  const askState = async (): Promise<void> => {
    deskState = await desk.state();
    if (stopping) return;
    const pauseMs = deskState === 'up' ? deskStateMs.up : deskStateMs.otherwise;
    asking = setTimeout(() => void askState(), pauseMs);
  };
  void askState();

  const servers: Listening[] = [];
  const stop = async (): Promise<void> => {
    stopping = true;
    clearTimeout(asking);
    const [discovery, ...others] = servers;
    await discovery?.close();
    await cache.stop();
    await dispatcher.stop();
    for (const server of others) await server.close();
  };
  try {
    const discovery = createDiscovery(cache, () => deskState);
    servers.push(await listen(discovery, 'discovery', { host, port: ports.discovery }));
    const notReady = (): string[] => {
      if (stopping) return ['shutting down'];
      return cache.synced() ? [] : ['the Proxies have not been read from Kubernetes yet'];
    };
    servers.push(await startHealthServer({ host, port: ports.health, notReady }));
    const metrics = createControllerMetrics({ view: cache, temporal: () => deskState });
    servers.push(await startMetricsServer(metrics, { host, port: ports.metrics }));
  } catch (error) {
    await stop();
    throw error;
  }
  const [discovery = 0, health = 0, metrics = 0] = servers.map(({ port }) => port);
  return { ports: { discovery, health, metrics }, stop };
}
