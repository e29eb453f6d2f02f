/** Metrics of the worker (design §10). */
import { setTimeout as delay } from 'node:timers/promises';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { ProviderHealthStatus } from '../api/providerHealth.ts';
import type { ProviderHealthRecords } from '../activities/kubernetes/healthRecords.ts';
import type { StepObserver } from '../activities/observe.ts';
import { collectEveryMs } from '../workflows/contract/budgets.ts';
import type { RequestSeen } from '../activities/proxmox/observed.ts';

export interface WorkerMetrics extends StepObserver {
  registry: Registry;
  /** What a round of the collection found; `null`: the provider is gone. */
  onOrphans(provider: string, counts: Record<string, number> | null): void;
  onRequest(seen: RequestSeen): void;
  /** A Proxy was Ready for the first time, so long after its creation. */
  onFirstReady(seconds: number): void;
}

/** Steps take from milliseconds (a read) to ten minutes (a clone). */
const stepBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** From a second (an External Proxy) to an hour (a large template, a queue of clones). */
const readyBuckets = [1, 5, 10, 20, 30, 60, 120, 180, 300, 600, 1_200, 3_600];

/** What metrics are read from when they are asked for. */
export interface MetricSources {
  /** Whether the config file as it is now is in force. */
  configValid: () => boolean;
  /** Every ProviderHealth by its provider; `null`: they cannot be read now. Does not throw. */
  providerHealth: () => Promise<ReadonlyMap<string, Pick<ProviderHealthStatus, 'targets'>> | null>;
}

/** A registry of its own, so that two workers in one test process do not meet. */
export function createWorkerMetrics(sources: MetricSources): WorkerMetrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const steps = new Histogram({
    name: 'proxy_operator_step_duration_seconds',
    help: 'Duration of one attempt of a step.',
    labelNames: ['provider', 'step', 'outcome'],
    buckets: stepBuckets,
    registers: [registry],
  });
  const requests = new Counter({
    name: 'proxy_operator_api_requests_total',
    help: 'Requests to Proxmox VE by the method of the client and by outcome.',
    labelNames: ['provider', 'method', 'outcome'],
    registers: [registry],
  });
  const budgets = new Counter({
    name: 'proxy_operator_budget_exceeded_total',
    help: 'Waits that ran out of their budget.',
    labelNames: ['step'],
    registers: [registry],
  });
  const timeToReady = new Histogram({
    name: 'proxy_operator_time_to_ready_seconds',
    help: 'From the creation of a Proxy until it was Ready for the first time.',
    buckets: readyBuckets,
    registers: [registry],
  });
  const valid = new Gauge({
    name: 'proxy_operator_config_valid',
    help: '1 while the providers config as it is now is in force.',
    registers: [],
    collect() {
      this.set(sources.configValid() ? 1 : 0);
    },
  });
  registry.registerMetric(valid);
  // Read from the objects: whichever worker ran the check, all say the same, and what is gone there is gone here.
  const up = new Gauge({
    name: 'proxy_operator_provider_target_up',
    help: '1 while the target is ready, by the ProviderHealth of the provider.',
    labelNames: ['provider', 'target'],
    registers: [],
    async collect() {
      const seen = await sources.providerHealth();
      this.reset();
      for (const [provider, { targets }] of seen ?? []) {
        for (const { name, ready } of targets) this.set({ provider, target: name }, ready ? 1 : 0);
      }
    },
  });
  registry.registerMetric(up);
  const orphans = orphanGauge(registry);
  return {
    registry,
    onOrphans: orphans,
    onFirstReady: (seconds) => {
      timeToReady.observe(seconds);
    },
    onRequest: ({ provider, method, outcome }) => {
      requests.inc({ provider, method, outcome });
    },
    onStep: ({ step, provider, outcome, seconds, budgetExceeded }) => {
      steps.observe({ provider, step, outcome }, seconds);
      if (budgetExceeded) budgets.inc({ step });
    },
  };
}

/** Every ProviderHealth, for metrics: `null` when Kubernetes does not give them within two seconds. Never throws. */
export async function readForMetrics(
  health: Pick<ProviderHealthRecords, 'list'>,
  withinMs = 2_000,
): Promise<Map<string, ProviderHealthStatus> | null> {
  const late = new AbortController();
  const tooLate = delay(withinMs, null, { signal: late.signal }).catch(() => null);
  const listed = health.list().catch(() => null);
  const seen = await Promise.race([listed, tooLate]);
  late.abort();
  return seen;
}

/** Another worker may run the next rounds, so what this one saw counts for so many of them only. */
const roundsShown = 3;

function orphanGauge(registry: Registry): WorkerMetrics['onOrphans'] {
  const seen = new Map<string, { counts: Record<string, number>; atMs: number }>();
  const gauge = new Gauge({
    name: 'proxy_operator_gc_orphans',
    help: 'VMs, seeds and leftovers that the last round of the collection found.',
    labelNames: ['provider', 'kind'],
    registers: [],
    collect() {
      this.reset();
      for (const [provider, { counts, atMs }] of seen) {
        if (Date.now() - atMs > roundsShown * collectEveryMs) continue;
        for (const [kind, count] of Object.entries(counts)) this.set({ provider, kind }, count);
      }
    },
  });
  registry.registerMetric(gauge);
  return (provider, counts) => {
    if (counts === null) seen.delete(provider);
    else seen.set(provider, { counts, atMs: Date.now() });
  };
}
