/** Connections to Temporal that wait for it, and what has to exist there before the first workflow. */
import { setTimeout as delay } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import type { ClientPlugin } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import type { Logger } from 'pino';
import { grpcCodeOf, grpcCodes } from './grpc.ts';
import type { TemporalSettings } from './temporalSettings.ts';

export interface ConnectOptions {
  settings: TemporalSettings;
  log: Logger;
  /** Ends the waiting; the connect then rejects with its reason. */
  signal: AbortSignal;
}

const connectTimeoutMs = 5_000;
const retry = { firstMs: 500, maxMs: 10_000 };

/** A client for the controller; waits until server and namespace are there. */
export async function connectClient(
  options: ConnectOptions & { plugins: ClientPlugin[] },
): Promise<{ client: Client; connection: Connection }> {
  const { settings, plugins } = options;
  const connection = await untilConnected(options, async () => {
    const candidate = await Connection.connect({
      ...connectionOptions(settings),
      connectTimeout: connectTimeoutMs,
    });
    return await withNamespace(candidate, settings);
  });
  return {
    connection,
    client: new Client({ connection, namespace: settings.namespace, plugins }),
  };
}

/** A connection for workers (a Client may use it too); waits until server and namespace are there. */
export async function connectNative(options: ConnectOptions): Promise<NativeConnection> {
  return await untilConnected(options, async () => {
    const candidate = await NativeConnection.connect(connectionOptions(options.settings));
    return await withNamespace(candidate, options.settings);
  });
}

function connectionOptions({ address, apiKey, tls }: TemporalSettings) {
  return { address, tls, ...(apiKey === null ? {} : { apiKey }) };
}

async function withNamespace<C extends Connection | NativeConnection>(
  connection: C,
  { address, namespace }: TemporalSettings,
): Promise<C> {
  try {
    await connection.workflowService.describeNamespace({ namespace });
    return connection;
  } catch (error) {
    // A key may be good for workflows and not for this question.
    if (grpcCodeOf(error) === grpcCodes.permissionDenied) return connection;
    await connection.close();
    if (grpcCodeOf(error) === grpcCodes.notFound) {
      throw new Error(
        `Temporal at ${address} has no namespace "${namespace}". Create it: temporal operator namespace create --namespace ${namespace} --retention 30d`,
        { cause: error },
      );
    }
    throw error;
  }
}

/** Tries for ever: the order in which a cluster starts its parts is nobody's to choose. One line per kind of failure. */
async function untilConnected<C>(
  { settings, log, signal }: ConnectOptions,
  attempt: () => Promise<C>,
): Promise<C> {
  let lastText = '';
  for (let failures = 0; ; failures++) {
    signal.throwIfAborted();
    try {
      const connection = await attempt();
      log.info({ address: settings.address, namespace: settings.namespace }, 'temporal connected');
      return connection;
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      if (text !== lastText) {
        lastText = text;
        log.warn(
          { reason: text, address: settings.address },
          'temporal not reachable, trying again',
        );
      }
    }
    await delay(Math.min(retry.maxMs, retry.firstMs * 2 ** Math.min(failures, 10)), undefined, {
      signal,
    });
  }
}
