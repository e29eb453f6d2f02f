/** Metrics of the controller (design §10), computed when they are read. */
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { DeskState } from './desk.ts';
import type { ProxyView } from './discovery.ts';

export interface MetricsSources {
  view: ProxyView;
  temporal: () => DeskState;
}

/** A registry of its own, so that two controllers in one test process do not meet. */
export function createControllerMetrics({ view, temporal }: MetricsSources): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });

  const temporalUp = new Gauge({
    name: 'proxy_operator_temporal_up',
    help: '1 while Temporal answers.',
    registers: [],
    collect() {
      this.set(temporal() === 'down' ? 0 : 1);
    },
  });
  const watchAge = new Gauge({
    name: 'proxy_operator_watch_age_seconds',
    help: 'Seconds since the last sign of life of a watch.',
    labelNames: ['kind'],
    registers: [],
    collect() {
      const syncedMs = view.lastSyncMs();
      if (syncedMs !== null) this.set({ kind: 'proxies' }, (Date.now() - syncedMs) / 1_000);
    },
  });
  const proxies = new Gauge({
    name: 'proxy_operator_proxies',
    help: 'Proxies by provider and phase.',
    labelNames: ['provider', 'phase'],
    registers: [],
    collect() {
      this.reset();
      for (const { spec, status } of view.list()) {
        this.inc({ provider: spec.provider ?? '', phase: status.phase ?? 'Pending' });
      }
    },
  });
  for (const metric of [temporalUp, watchAge, proxies]) registry.registerMetric(metric);
  return registry;
}
