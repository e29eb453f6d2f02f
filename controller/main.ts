/** The controller process: `node controller/main.ts --help`. */
import { createKubernetesClient, loadKubeConfig } from '../activities/kubernetes/client.ts';
import { readOptionsOrExit, UsageError } from '../worker/runtime/env.ts';
import { controllerFlags } from '../worker/runtime/flags.ts';
import { createLogger } from '../worker/runtime/logger.ts';
import { registerSearchAttributes } from '../worker/runtime/searchAttributes.ts';
import { aborted, shutdownSignal } from '../worker/runtime/shutdown.ts';
import { startTelemetry } from '../worker/runtime/telemetry.ts';
import { connectClient } from '../worker/runtime/temporal.ts';
import { readTemporalSettings } from '../worker/runtime/temporalSettings.ts';
import { startController } from './controller.ts';
import type { Desk } from './desk.ts';
import { createLateDesk } from './lateDesk.ts';
import { createTemporalDesk } from './temporalDesk.ts';

const options = readOptionsOrExit('controller', controllerFlags);
const log = createLogger('controller', options.logLevel);

try {
  const telemetry = startTelemetry('egress-proxies-controller');
  const signal = shutdownSignal(log);
  const settings = readTemporalSettings();
  const kubernetes = createKubernetesClient(loadKubeConfig());

  // Beside everything else: discovery serves, and readiness holds, while Temporal is away.
  const connecting = connectClient({ settings, log, signal, plugins: [telemetry.plugin] });
  const connected = connecting.then(async ({ client, connection }): Promise<Desk> => {
    const searchAttributes = await registerSearchAttributes(connection, settings.namespace, log);
    return createTemporalDesk({ client, searchAttributes });
  });

  const controller = await startController({
    kubernetes,
    desk: createLateDesk(connected),
    log,
    host: options.bindAddress,
    ports: {
      metrics: options.metricsPort,
      health: options.healthPort,
      discovery: options.discoveryPort,
    },
  });
  log.info({ ports: controller.ports }, 'controller started');

  await aborted(signal);
  await controller.stop();
  const [connection] = await Promise.allSettled([connecting]);
  if (connection.status === 'fulfilled') await connection.value.connection.close();
  await kubernetes.close();
  await telemetry.shutdown();
  log.info({}, 'stopped');
} catch (error) {
  log.fatal({ err: error }, 'controller cannot start');
  process.exit(error instanceof UsageError ? error.exitCode : 1);
}
