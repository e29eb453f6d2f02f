/** The worker process: `node worker/main.ts --help`. */
import { makeTelemetryFilterString, Runtime } from '@temporalio/worker';
import { createKubernetesClient, loadKubeConfig } from '../activities/kubernetes/client.ts';
import { KubernetesHealthRecords } from '../activities/kubernetes/healthRecords.ts';
import { ConfigError } from '../api/providersConfig.ts';
import { ConfigFile } from './configFile.ts';
import { findInstallation } from './installation.ts';
import { createWorkerMetrics, readForMetrics } from './metrics.ts';
import { readOptionsOrExit, UsageError } from './runtime/env.ts';
import { workerFlags } from './runtime/flags.ts';
import { startHealthServer, startMetricsServer } from './runtime/health.ts';
import { createLogger, temporalLogger } from './runtime/logger.ts';
import { registerSearchAttributes } from './runtime/searchAttributes.ts';
import { aborted, shutdownSignal } from './runtime/shutdown.ts';
import { startTelemetry } from './runtime/telemetry.ts';
import { connectNative } from './runtime/temporal.ts';
import { readTemporalSettings } from './runtime/temporalSettings.ts';
import { startWorker } from './worker.ts';

const options = readOptionsOrExit('worker', workerFlags);
const log = createLogger('worker', options.logLevel);

try {
  const config = await ConfigFile.load(options.providersConfig);
  const telemetry = startTelemetry('egress-proxies-worker');
  const signal = shutdownSignal(log);
  const settings = readTemporalSettings();
  const host = options.bindAddress;
  Runtime.install({
    logger: temporalLogger(log),
    // Ours decide the order of the end; Temporal's own handlers would race them.
    shutdownSignals: [],
    telemetryOptions: {
      logging: { forward: {}, filter: makeTelemetryFilterString({ core: 'WARN', other: 'ERROR' }) },
      metrics: { prometheus: { bindAddress: `${host}:${options.sdkMetricsPort}` } },
    },
  });
  let lacking: string[] = ['the worker does not poll for tasks yet'];
  const kubernetes = createKubernetesClient(loadKubeConfig());
  const providerHealth = new KubernetesHealthRecords(kubernetes);
  const metrics = createWorkerMetrics({
    configValid: () => config.problem() === null,
    providerHealth: () => readForMetrics(providerHealth),
  });
  const health = await startHealthServer({
    host,
    port: options.healthPort,
    notReady: () => lacking,
  });
  const metricsServer = await startMetricsServer(metrics.registry, {
    host,
    port: options.metricsPort,
  });

  const installation = await findInstallation(
    options.installationId,
    options.alsoInstallation,
    kubernetes,
  );
  const connection = await connectNative({ settings, log, signal });
  await registerSearchAttributes(connection, settings.namespace, log);
  const worker = await startWorker({
    config,
    kubernetes,
    connection,
    installation,
    metrics,
    telemetry,
    shutdown: signal,
    log,
    namespace: settings.namespace,
    healthCheckUrl: options.healthCheckUrl,
    workflowBundle: options.workflowBundle,
    checks: { intervalMs: options.providerCheckInterval, timeoutMs: options.providerCheckTimeout },
  });
  lacking = [];
  log.info(
    { installation: installation.id, ports: { health: health.port, metrics: metricsServer.port } },
    'ready',
  );

  await Promise.race([aborted(signal), worker.failed]);
  lacking = ['shutting down'];
  await worker.stop();
  await connection.close();
  await kubernetes.close();
  await metricsServer.close();
  await health.close();
  await telemetry.shutdown();
  log.info({}, 'stopped');
} catch (error) {
  if (error instanceof ConfigError) {
    log.fatal({ problems: error.problems, file: error.fileName }, 'providers config not accepted');
    process.exit(2);
  }
  log.fatal({ err: error }, 'worker cannot start');
  process.exit(error instanceof UsageError ? error.exitCode : 1);
}
