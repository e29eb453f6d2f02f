/** Builds what the steps use, once per process. Nothing connects here; first use does. */
import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import type { HealthDeps, Installation, Pace, StepDeps } from '../activities/deps.ts';
import type { ProcessHooks } from '../activities/bindStep.ts';
import {
  createCollectionSteps,
  createHealthSteps,
  createKubernetesSteps,
  createProviderSteps,
} from '../activities/index.ts';
import type { KubernetesClient } from '../activities/kubernetes/client.ts';
import { kubernetesAlarms } from '../activities/kubernetes/absenceAlarm.ts';
import {
  KubernetesHealthRecords,
  type ProviderHealthRecords,
} from '../activities/kubernetes/healthRecords.ts';
import { KubernetesProxyRecords } from '../activities/kubernetes/kubernetesRecords.ts';
import { showOrphans } from '../activities/kubernetes/orphanBoard.ts';
import { readCredentials } from '../activities/kubernetes/secrets.ts';
import { surveyOf } from '../activities/kubernetes/survey.ts';
import type { ProbeDeps } from '../activities/probeProxies.ts';
import type { WatchDeps } from '../activities/watchVms.ts';
import { createProxmoxClients, type ProxmoxClients } from '../activities/proxmox/clients.ts';
import type { WatchVmsInput } from '../workflows/contract/providerSteps.ts';
import { agentPollMs, runningPollMs, taskPoll } from '../workflows/contract/budgets.ts';
import { steadyClock, wallClock } from './clocks.ts';
import { orphanSender, restCollection } from './collections.ts';
import type { ConfigFile } from './configFile.ts';
import type { WorkerMetrics } from './metrics.ts';
import { sharedProxies } from './sharedProxies.ts';
import {
  signalDesiredChanged,
  signalHealth,
  signalObserved,
  tellProviderChanged,
} from './temporalSignals.ts';
import { createWatchers } from './watchers.ts';

export interface DependencyOptions {
  config: ConfigFile;
  kubernetes: KubernetesClient;
  temporal: Client;
  installation: Installation;
  healthCheckUrl: string;
  /** Flags `--provider-check-interval` and `--provider-check-timeout`. */
  checks: HealthDeps['checks'];
  metrics: WorkerMetrics;
  /** Aborted when the process is to end. */
  shutdown: AbortSignal;
  log: Logger;
}

export interface Dependencies {
  clients: ProxmoxClients;
  health: ProviderHealthRecords;
  /** Activities of the main queue and of every provider's queues. */
  mainSteps: object;
  providerSteps: object;
}

/** How often a worker asks while it waits, in milliseconds. */
export const pace: Pace = {
  taskMinMs: taskPoll.minMs,
  taskMaxMs: taskPoll.maxMs,
  runningMs: runningPollMs,
  agentMs: agentPollMs,
  budgetScale: 1,
};

/** The composition root of the steps: clients, records, the steps bound to them. */
export function createDependencies(options: DependencyOptions): Dependencies {
  const { config, kubernetes, installation, metrics, shutdown, log } = options;
  const hooks: ProcessHooks = { observer: metrics, shutdown };
  const clients = createProxmoxClients({
    current: () => config.current(),
    log,
    onRequest: (seen) => {
      metrics.onRequest(seen);
    },
  });
  const now = (): Date => new Date();
  const records = new KubernetesProxyRecords(kubernetes, log, now, (seconds) => {
    metrics.onFirstReady(seconds);
  });
  const deps: StepDeps = {
    providers: clients,
    kubernetes: records,
    survey: surveyOf(kubernetes),
    alarms: kubernetesAlarms(kubernetes),
    installation,
    clock: wallClock,
    pace,
    log,
  };
  const watchProxies = sharedProxies(kubernetes, log);
  const probing: ProbeDeps = {
    watchProxies,
    readSecret: (namespace, name) => readCredentials(kubernetes, namespace, name),
    signal: (workflowId, health) => signalHealth(options.temporal, workflowId, health),
    healthCheckUrl: options.healthCheckUrl,
    clock: steadyClock,
    log: log.child({ step: 'probeProxies' }),
  };
  const health = new KubernetesHealthRecords(kubernetes);
  const watching: WatchDeps = {
    steps: { ...deps, clock: steadyClock },
    api: (provider, call) => clients.laneApi(provider, 'watch', call),
    watchProxies,
    alarms: deps.alarms,
    observed: (workflowId, news) => signalObserved(options.temporal, workflowId, news),
    desiredChanged: (workflowId, generation) =>
      signalDesiredChanged(options.temporal, workflowId, generation),
    random: Math.random,
  };
  const watchers = createWatchers(probing, watching, shutdown, log);
  const healthSteps = createHealthSteps(
    {
      ...deps,
      providers: clients,
      health,
      checks: options.checks,
      wakeProxies: (provider) =>
        tellProviderChanged({ client: options.temporal, kubernetes, log }, provider),
    },
    hooks,
  );
  return {
    clients,
    health,
    mainSteps: {
      ...createKubernetesSteps(deps, hooks),
      publishHealth: healthSteps.publishHealth,
      ...createCollectionSteps(deps, hooks, {
        send: orphanSender(options.temporal),
        board: {
          show: showOrphans(kubernetes, log),
          count: (provider, counts) => metrics.onOrphans(provider, counts),
          restSchedule: (provider) => restCollection(options.temporal, provider),
        },
      }),
      probeProxies: () => watchers.probeProxies(),
    },
    providerSteps: {
      ...createProviderSteps(deps, hooks),
      checkNode: healthSteps.checkNode,
      watchVms: (input: WatchVmsInput) => watchers.watchVms(input),
    },
  };
}
