/**
 * The real workflow bundle on Temporal's time-skipping server, over a fake world. Every story has a server of its
 * own: once a server has skipped an hour, later workflows on it see time pass at its real pace.
 */
import { before } from 'node:test';
import type { WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import {
  DefaultLogger,
  makeTelemetryFilterString,
  Runtime,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker';
import { findTool } from '../../deploy/dev/tools.ts';
import { bundleWorkflows } from '../../worker/bundle.ts';
import { registerSearchAttributes } from '../../worker/runtime/searchAttributes.ts';
import { tracingPlugin } from '../../worker/runtime/tracingPlugin.ts';
import {
  mainTaskQueue,
  proxyWorkflowId,
  type HealthSignal,
  type ProxyStateView,
} from '../../workflows/contract/messages.ts';
import type { proxy } from '../../workflows/index.ts';
import type { ProxyState } from '../../workflows/state.ts';
import { proxyRef, type FakeWorld } from './fakeWorld.ts';
import { calm, settled } from './calm.ts';
import { eventually } from './eventually.ts';
import { replayRun } from './replays.ts';
import { recordingLog } from './recordingLog.ts';
import { startWorkflowWorkers, type WorkflowWorkers } from './workflowWorkers.ts';

export type ProxyHandle = WorkflowHandleWithFirstExecutionRunId<typeof proxy>;

/** One running Proxy workflow in its world. */
export interface Story {
  world: FakeWorld;
  handle: ProxyHandle;
  env: TestWorkflowEnvironment;
  /** Waits (real time) until `check` holds, while the workflow is left alone. */
  until: (check: () => boolean, what: string) => Promise<void>;
  /** Lets the server's clock run on. */
  skip: (ms: number) => Promise<void>;
  health: (healthy: boolean, ip?: string) => Promise<void>;
  changed: (change: Partial<NonNullable<FakeWorld['desired']>>) => Promise<void>;
  deleted: () => Promise<void>;
  state: () => Promise<ProxyStateView>;
  /** No step is pending and no decision is due. */
  settled: () => Promise<void>;
  /** No step ends by itself now, so one may be cancelled. Every signal of a story waits for it. */
  calm: () => Promise<void>;
  /** The workers are shut down, steps under way included, and new ones take over. Only in real time: the test server
   * goes on handing work to those who left. */
  restartWorkers: () => Promise<void>;
}

/** How a story's server and workers differ from the usual. */
export interface StorySettings {
  /** Search attributes are registered, and the run uses them. */
  searchAttributes?: boolean;
  /** The state an earlier run hands over by continue-as-new. */
  carried?: ProxyState;
  /** 0: every workflow task replays the history from its start. */
  maxCachedWorkflows?: number;
  /** Temporal's own server instead of the time-skipping one. */
  realTime?: boolean;
  /** The same, and it asks for a fresh run from this many events on. */
  suggestContinueAsNewAt?: number;
}

let prepared: { bundle: WorkflowBundleWithSourceMap; testServer: string; cli: string } | undefined;

/** Prepares bundle and server programs; stories can be told from then on. */
export async function prepareWorkflowServer(): Promise<void> {
  const filter = makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' });
  Runtime.install({
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { filter } },
  });
  const { path: testServer } = await findTool('temporal-test-server');
  const { path: cli } = await findTool('temporal');
  prepared = { bundle: await bundleWorkflows(), testServer, cli };
}

/** The same for a test file: call once in its suite. */
export function useWorkflowServer(): void {
  before(prepareWorkflowServer);
}

/** Starts a Proxy workflow with all its queues served, runs `tell`, and ends the run if it still goes. */
export async function tellStory(
  world: FakeWorld,
  tell: (story: Story) => Promise<void>,
  settings: StorySettings = {},
): Promise<void> {
  await onServer(world.steps(), settings, async (server, workers) => {
    const handle = await startProxy(server, settings);
    const signal = handle.signal.bind(handle);
    handle.signal = async (...args) => {
      await calm(handle);
      await signal(...args);
    };
    try {
      await tell(storyOf(server, world, handle, workers));
    } finally {
      // A run ended in the middle of a step would keep the server's clock from skipping in later tests.
      await settled(handle).catch(() => undefined);
      await handle.terminate('the test is over').catch(() => undefined);
    }
    // Ended, its history ends with no decision half made.
    if (prepared) await replayRun(prepared.bundle, handle);
  });
}

/** Runs `work` with a server of its own on which `activities` and the workflows are served. */
export async function onServer(
  activities: object,
  settings: StorySettings,
  work: (server: TestWorkflowEnvironment, workers: WorkflowWorkers) => Promise<void>,
): Promise<void> {
  if (!prepared) throw new Error('useWorkflowServer() was not called');
  const { bundle } = prepared;
  const { maxCachedWorkflows } = settings;
  const server = await startServer(prepared, settings);
  try {
    if (settings.searchAttributes === true) await registerAttributes(server);
    const workers = await startWorkflowWorkers({
      server,
      bundle,
      activities,
      ...(maxCachedWorkflows === undefined ? {} : { maxCachedWorkflows }),
    });
    try {
      await Promise.race([work(server, workers), workers.failed]);
    } finally {
      await workers.stop();
    }
  } finally {
    await server.teardown();
  }
}

function startServer(
  { testServer, cli }: { testServer: string; cli: string },
  { realTime = false, suggestContinueAsNewAt }: StorySettings,
): Promise<TestWorkflowEnvironment> {
  // Clients trace, as the controller and the worker do.
  const client = { plugins: [tracingPlugin()] };
  if (!realTime && suggestContinueAsNewAt === undefined) {
    const executable = { type: 'existing-path', path: testServer } as const;
    return TestWorkflowEnvironment.createTimeSkipping({ server: { executable }, client });
  }
  const executable = { type: 'existing-path', path: cli } as const;
  const setting = `limit.historyCount.suggestContinueAsNew=${suggestContinueAsNewAt}`;
  const dynamic = suggestContinueAsNewAt === undefined ? [] : ['--dynamic-config-value', setting];
  const extraArgs = ['--output=none', ...dynamic];
  return TestWorkflowEnvironment.createLocal({
    server: { executable, extraArgs, log: { format: 'json', level: 'never' } },
    client,
  });
}

async function registerAttributes(server: TestWorkflowEnvironment): Promise<void> {
  const { connection, namespace } = server;
  const { log, lines } = recordingLog();
  const usable = await registerSearchAttributes(connection, namespace ?? 'default', log);
  if (!usable) throw new Error(`search attributes were not registered: ${JSON.stringify(lines)}`);
}

function startProxy(
  { client }: TestWorkflowEnvironment,
  { searchAttributes = false, carried }: StorySettings,
): Promise<ProxyHandle> {
  return client.workflow.start<typeof proxy>('proxy', {
    workflowId: proxyWorkflowId(proxyRef.uid),
    taskQueue: mainTaskQueue,
    staticSummary: `${proxyRef.namespace}/${proxyRef.name}`,
    args: [{ ref: proxyRef, searchAttributes, ...(carried === undefined ? {} : { carried }) }],
  });
}

const shortSkipMs = 61_000;

/** What a status shows may be over at once, so each is looked at when it is published, beside the looks now and then. */
async function cameTrue(world: FakeWorld, check: () => boolean, what: string): Promise<void> {
  let seen = false;
  const look = (): void => {
    seen ||= check();
  };
  world.onPublish.add(look);
  try {
    await eventually(() => {
      look();
      if (!seen) throw new Error(`never came true: ${what}; ${JSON.stringify(world.status)}`);
    }, 15_000);
  } finally {
    world.onPublish.delete(look);
  }
}

function storyOf(
  server: TestWorkflowEnvironment,
  world: FakeWorld,
  handle: ProxyHandle,
  workers: WorkflowWorkers,
): Story {
  let sequence = 0;
  return {
    world,
    handle,
    env: server,
    until: (check, what) => cameTrue(world, check, what),
    skip: async (ms) => {
      // Once a step runs inside a sleep, the test server spends the rest of that sleep in real time. So short
      // skips go second by second; long ones are for stretches in which nothing happens.
      const sliceMs = ms <= shortSkipMs ? 1_000 : ms;
      for (let skippedMs = 0; skippedMs < ms; skippedMs += sliceMs) {
        await settled(handle);
        await server.sleep(Math.min(sliceMs, ms - skippedMs));
      }
      await settled(handle);
    },
    health: async (healthy, ip = '192.0.2.10') => {
      sequence += 1;
      const signal: HealthSignal = {
        run: 'run-1',
        sequence,
        ip,
        port: 3128,
        healthy,
        reason: healthy ? 'ProbeSucceeded' : 'ConnectionRefused',
        message: healthy ? '204 through the proxy' : `${ip}:3128 refused the connection`,
      };
      await handle.signal('health', signal);
    },
    changed: async (change) => {
      if (!world.desired) throw new Error('the Proxy is gone');
      await calm(handle);
      world.desired = { ...world.desired, generation: world.desired.generation + 1, ...change };
      await handle.signal('desiredChanged', {
        generation: world.desired.generation,
        deleting: world.deleting,
      });
    },
    deleted: async () => {
      await calm(handle);
      world.deleting = true;
      await handle.signal('desiredChanged', { generation: 1, deleting: true });
    },
    state: () => handle.query<ProxyStateView>('state'),
    settled: () => settled(handle),
    calm: () => calm(handle),
    restartWorkers: () => workers.restart(),
  };
}
