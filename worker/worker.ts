/** The worker put together: serves the queues of workflows and providers, and follows the providers config. */
import { Client } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import type { Logger } from 'pino';
import type { HealthDeps, Installation } from '../activities/deps.ts';
import type { KubernetesClient } from '../activities/kubernetes/client.ts';
import { warnAboutSettings } from '../activities/proxmox/clients.ts';
import { bundleWorkflows } from './bundle.ts';
import { restCollection } from './collections.ts';
import type { ConfigFile, ConfigNews } from './configFile.ts';
import { createDependencies } from './dependencies.ts';
import type { WorkerMetrics } from './metrics.ts';
import { publishConfigState } from './configState.ts';
import { ensureProbes } from './ensureWorkflows.ts';
import { QueueWorkers } from './queueWorkers.ts';
import type { Telemetry } from './runtime/telemetry.ts';
import { ensureProviders } from './servedProviders.ts';
import { checkNow, tellProviderChanged } from './temporalSignals.ts';

export interface OperatorWorkerOptions {
  config: ConfigFile;
  kubernetes: KubernetesClient;
  connection: NativeConnection;
  namespace: string;
  installation: Installation;
  healthCheckUrl: string;
  /** Flags `--provider-check-interval` and `--provider-check-timeout`. */
  checks: HealthDeps['checks'];
  /** File made by `npm run bundle`; empty: the workflows are bundled now. */
  workflowBundle: string;
  metrics: WorkerMetrics;
  telemetry: Telemetry;
  /** Aborted when the process is to end. */
  shutdown: AbortSignal;
  log: Logger;
}

export interface OperatorWorker {
  /** Rejects when a Temporal worker breaks for good. */
  failed: Promise<never>;
  /** Steps under way finish first, within the grace of 25 s. */
  stop(): Promise<void>;
}

/** The kubelet refreshes mounted files within about a minute; looking is cheap. */
const lookEveryMs = 2_000;
/** Workflows that every worker makes sure of. */
const ensureEveryMs = 60_000;

/** Serves the queues of the config as it is, and follows it from then on. Throws when the workflows cannot be bundled or Temporal refuses a worker. */
export async function startWorker(options: OperatorWorkerOptions): Promise<OperatorWorker> {
  const { config, connection, namespace, telemetry, log } = options;
  const plugins = [telemetry.plugin];
  const temporal = new Client({ connection, namespace, plugins });
  const { clients, health, mainSteps, providerSteps } = createDependencies({
    ...options,
    temporal,
  });
  const queues = new QueueWorkers({ connection, namespace, plugins, log });
  const ensureServed = (): Promise<void> => ensureProviders({ ...options, health, temporal });
  const names = (): string[] => config.current().providers.map(({ name }) => name);

  async function serveConfigured(): Promise<void> {
    const wanted = new Set(names());
    for (const name of queues.providers()) {
      if (wanted.has(name)) continue;
      await queues.stopProvider(name);
      await restCollection(temporal, name).catch((error: unknown) => {
        log.warn({ provider: name, err: error }, 'Schedule not paused, it rests by itself');
      });
    }
    for (const name of wanted) await queues.startProvider(name, providerSteps);
  }

  async function publishConfig(): Promise<void> {
    for (const name of names()) await publishConfigState({ health, log }, name, config.problem());
  }

  /** Something about the provider is different now: its Proxies try again, its nodes are checked at once. */
  async function tellChanged(name: string): Promise<void> {
    await checkNow(temporal, name, log);
    await tellProviderChanged({ ...options, client: temporal }, name);
  }

  async function take(news: ConfigNews): Promise<void> {
    switch (news.kind) {
      case 'rejected':
        log.error(
          { problem: news.problem },
          'providers config not accepted, the old one stays in force',
        );
        return publishConfig();
      case 'accepted':
        log.info({ providers: names() }, 'providers config accepted');
        await warnAboutSettings(news.config, log);
        await serveConfigured();
        await ensureServed().catch((error: unknown) => {
          log.warn({ err: error }, 'providers not made sure of, trying again within a minute');
        });
        for (const name of names()) await tellChanged(name);
        return;
      case 'credentials':
        for (const name of news.providers) await tellChanged(name);
        return;
    }
  }

  await warnAboutSettings(config.current(), log);
  const codePath = options.workflowBundle;
  await queues.startMain(codePath === '' ? await bundleWorkflows() : { codePath }, mainSteps);
  await serveConfigured();
  const following = repeat(lookEveryMs, log, async () => {
    for (const news of await config.look()) await take(news);
  });
  const probing = repeat(ensureEveryMs, log, () => ensureProbes(temporal));
  const ensuring = repeat(ensureEveryMs, log, ensureServed);
  return {
    failed: queues.failed,
    stop: async () => {
      await Promise.all([following.stop(), probing.stop(), ensuring.stop()]);
      await queues.stopAll();
      await clients.close();
    },
  };
}

/** Runs `work` now and then again and again, one run at a time; a failure is logged and the next run tries again. */
function repeat(
  everyMs: number,
  log: Logger,
  work: () => Promise<void>,
): { stop(): Promise<void> } {
  const ended = new AbortController();
  let running = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  const round = (): void => {
    running = work()
      .catch((error: unknown) => {
        if (!ended.signal.aborted) log.warn({ err: error }, 'background work failed, trying again');
      })
      .then(() => {
        if (!ended.signal.aborted) timer = setTimeout(round, everyMs);
      });
  };
  round();
  return {
    stop: async () => {
      ended.abort();
      clearTimeout(timer);
      await running;
    },
  };
}
