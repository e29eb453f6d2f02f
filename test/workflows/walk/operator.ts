/** One installation of the operator, whole: controller and worker as in production, Kubernetes as a small server. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, WorkflowNotFoundError, type WorkflowHandle } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { pino, type Logger } from 'pino';
import { createKubernetesClient } from '../../../activities/kubernetes/client.ts';
import { installationHex } from '../../../activities/vm/identity.ts';
import { providerHealthStatusSchema } from '../../../api/providerHealth.ts';
import { startController } from '../../../controller/controller.ts';
import { createTemporalDesk } from '../../../controller/temporalDesk.ts';
import { ConfigFile } from '../../../worker/configFile.ts';
import { createWorkerMetrics } from '../../../worker/metrics.ts';
import { tracingPlugin } from '../../../worker/runtime/tracingPlugin.ts';
import { startWorker } from '../../../worker/worker.ts';
import {
  collectScheduleId,
  proxyWorkflowId,
  stateQueryName,
} from '../../../workflows/contract/messages.ts';
import { FakeKubernetes } from '../../support/fakeKubernetes.ts';
import { tokenSecret } from '../../support/stepFixture.ts';
import { tokens, vmidRanges } from './cluster.ts';
import { withHealthObjects } from './healthObjects.ts';
import type { InstallationName } from './operations.ts';
import type { Ground } from './server.ts';

/** The catalogue of both installations. */
export const machines = {
  small: { cores: 1, memoryMiB: 512, diskGiB: 1 },
  big: { cores: 2, memoryMiB: 1024, diskGiB: 2 },
} as const;

export interface Operator {
  name: InstallationName;
  hex: string;
  kubernetes: FakeKubernetes;
  /** Ids of the alarms that stand, newest last. */
  alarms(): string[];
  /** As a person who edits `confirmAbsence`. */
  confirm(alarm: string): void;
  /** Triggers the Schedule of the collection; nothing where it does not stand yet. */
  collect(): Promise<void>;
  /** What the run of a UID says of itself, and the end of its history; `null` when it has ended. */
  openRun(uid: string): Promise<string | null>;
  /** The last lines of the log. */
  lines: string[];
  /** Rejects when a part of it breaks for good. */
  failed: Promise<never>;
  stop(): Promise<void>;
}

const provider = 'pve';
const keptLines = 400;

export async function startOperator(
  ground: Ground,
  server: TestWorkflowEnvironment,
  name: InstallationName,
  url: string,
): Promise<Operator> {
  const kubernetes = await new FakeKubernetes().start();
  const health = withHealthObjects(createKubernetesClient(kubernetes.kubeConfig()));
  const { log, lines } = recentLines();
  const configPath = join(ground.dir, `${name}.yaml`);
  const confirm = (alarm: string | null): void => {
    writeFileSync(configPath, configOf(ground, name, url, alarm));
  };
  confirm(null);
  const config = await ConfigFile.load(configPath);
  const plugins = [tracingPlugin()];
  const { connection, nativeConnection } = server;
  const client = new Client({ connection, namespace: name, plugins });
  const id = `installation-${name}`;
  const ending = new AbortController();
  const nothing = (): Promise<void> => Promise.resolve();
  const worker = await startWorker({
    config,
    kubernetes: health.client,
    connection: nativeConnection,
    namespace: name,
    installation: { id, hex: installationHex(id), also: [] },
    healthCheckUrl: ground.probeUrl,
    checks: { intervalMs: 1_000, timeoutMs: 1_000 },
    workflowBundle: ground.bundleFile,
    metrics: createWorkerMetrics({
      configValid: () => true,
      providerHealth: () => Promise.resolve(null),
    }),
    telemetry: { plugin: tracingPlugin(), flush: nothing, shutdown: nothing },
    shutdown: ending.signal,
    log,
  });
  const controller = await startController({
    kubernetes: health.client,
    desk: createTemporalDesk({ client, searchAttributes: false }),
    log,
    host: '127.0.0.1',
    ports: { metrics: 0, health: 0, discovery: 0 },
  });
  return {
    name,
    hex: installationHex(id),
    kubernetes,
    alarms: () => {
      const { alarm, orphans } = providerHealthStatusSchema.parse(health.statusOf(provider));
      return [alarm?.id, orphans?.alarm].filter((one) => typeof one === 'string');
    },
    confirm,
    collect: async () => {
      // Where a round is under way, the next one does as well.
      await client.schedule
        .getHandle(collectScheduleId(provider))
        // As the Schedule's own: a round of another policy remembers none before (docs/decisions/0015).
        .trigger('SKIP')
        .catch(() => undefined);
    },
    openRun: async (uid) => {
      const handle = client.workflow.getHandle(proxyWorkflowId(uid));
      try {
        const { status } = await handle.describe();
        return status.name === 'RUNNING' ? await describeRun(handle) : null;
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return null;
        throw error;
      }
    },
    lines,
    failed: worker.failed,
    stop: async () => {
      ending.abort();
      await controller.stop();
      await worker.stop();
      await health.client.close();
      await kubernetes.stop();
    },
  };
}

async function describeRun(handle: WorkflowHandle): Promise<string> {
  const view = await handle.query(stateQueryName).catch((error: unknown) => String(error));
  const { events } = await handle.fetchHistory();
  const last = (events ?? []).slice(-12).map((event) => {
    const step = event.activityTaskScheduledEventAttributes?.activityType?.name;
    const signal = event.workflowExecutionSignaledEventAttributes?.signalName;
    return `${String(event.eventId)} ${String(event.eventType)} ${step ?? signal ?? ''}`.trim();
  });
  return `${JSON.stringify(view)}; history: ${last.join(', ')}`;
}

function configOf(
  { dir, caFile }: Ground,
  name: InstallationName,
  url: string,
  confirmAbsence: string | null,
): string {
  const tokenFile = join(dir, `${name}.token`);
  const [tokenId = ''] = Object.entries(tokens).find(([, owner]) => owner === name) ?? [];
  writeFileSync(tokenFile, `${tokenId}=${tokenSecret}\n`);
  const proxmox = {
    url,
    tokenFile,
    caFile,
    nodes: ['pve1', 'pve2'],
    isoStorage: 'proxy-seeds',
    vmidRange: vmidRanges[name],
    templates: {
      'debian-13': { vmids: { pve1: 9001, pve2: 9003 } },
      shared: { vmid: 9002 },
    },
    machineTypes: machines,
    // Two whole operators share the machine, perhaps with others: twice the bound of the matrix.
    requestTimeoutSeconds: 2,
    address: { cidrs: ['127.0.0.0/8'] },
    gc: { mode: 'delete', graceMinutes: 0 },
    ...(confirmAbsence === null ? {} : { confirmAbsence }),
  };
  return JSON.stringify({ providers: [{ name: provider, type: 'proxmox', proxmox }] });
}

function recentLines(): { log: Logger; lines: string[] } {
  const lines: string[] = [];
  const write = (line: string): void => {
    if (lines.length >= keptLines) lines.splice(0, keptLines / 10);
    lines.push(line.trim());
  };
  return { log: pino({ level: 'info' }, { write }), lines };
}
