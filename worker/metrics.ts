/** Metrics of the worker (design §10). */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { StepObserver } from '../activities/observe.ts';
import type { RequestSeen } from '../activities/proxmox/observed.ts';

export interface WorkerMetrics extends StepObserver {
  registry: Registry;
  onRequest(seen: RequestSeen): void;
}

/** Steps take from milliseconds (a read) to ten minutes (a clone). */
const stepBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** `configValid`: whether the config file as it is now is in force. */
export function createWorkerMetrics(sources: { configValid: () => boolean }): WorkerMetrics {
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
  const valid = new Gauge({
    name: 'proxy_operator_config_valid',
    help: '1 while the providers config as it is now is in force.',
    registers: [],
    collect() {
      this.set(sources.configValid() ? 1 : 0);
    },
  });
  registry.registerMetric(valid);
  return {
    registry,
    onRequest: ({ provider, method, outcome }) => {
      requests.inc({ provider, method, outcome });
    },
    onStep: ({ step, provider, outcome, seconds, budgetExceeded }) => {
      steps.observe({ provider, step, outcome }, seconds);
      if (budgetExceeded) budgets.inc({ step });
    },
  };
}
