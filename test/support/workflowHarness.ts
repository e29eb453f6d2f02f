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
  Worker,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker';
import { findTool } from '../../deploy/dev/tools.ts';
import { bundleWorkflows } from '../../worker/bundle.ts';
import { tracingPlugin } from '../../worker/runtime/tracingPlugin.ts';
import {
  mainTaskQueue,
  providerQueue,
  providerWaitQueue,
  proxyWorkflowId,
  type HealthSignal,
  type ProxyStateView,
} from '../../workflows/contract/messages.ts';
import type { proxy } from '../../workflows/index.ts';
import { proxyRef, type FakeWorld } from './fakeWorld.ts';
import { eventually } from './eventually.ts';

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
}

let prepared: { bundle: WorkflowBundleWithSourceMap; testServer: string } | undefined;

/** Prepares bundle and server program. Call once at the top of a test file. */
export function useWorkflowServer(): void {
  before(async () => {
    const filter = makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' });
    Runtime.install({
      logger: new DefaultLogger('ERROR'),
      telemetryOptions: { logging: { filter } },
    });
    const { path: testServer } = await findTool('temporal-test-server');
    prepared = { bundle: await bundleWorkflows(), testServer };
  });
}

/** Starts a Proxy workflow with all its queues served, runs `tell`, and ends the run if it still goes. */
export async function tellStory(
  world: FakeWorld,
  tell: (story: Story) => Promise<void>,
): Promise<void> {
  if (!prepared) throw new Error('useWorkflowServer() was not called');
  const { bundle, testServer } = prepared;
  const server = await TestWorkflowEnvironment.createTimeSkipping({
    server: { executable: { type: 'existing-path', path: testServer } },
  });
  try {
    await tellOn(server, bundle, world, tell);
  } finally {
    await server.teardown();
  }
}

async function tellOn(
  server: TestWorkflowEnvironment,
  bundle: WorkflowBundleWithSourceMap,
  world: FakeWorld,
  tell: (story: Story) => Promise<void>,
): Promise<void> {
  const steps = world.steps();
  const connection = server.nativeConnection;
  const activities = { ...steps };
  const queues = [providerQueue('pve'), providerWaitQueue('pve')];
  const workers = await Promise.all([
    Worker.create({
      connection,
      taskQueue: mainTaskQueue,
      workflowBundle: bundle,
      activities,
      plugins: [tracingPlugin()],
    }),
    ...queues.map((taskQueue) => Worker.create({ connection, taskQueue, activities })),
  ]);
  const handle: ProxyHandle = await server.client.workflow.start<typeof proxy>('proxy', {
    workflowId: proxyWorkflowId(proxyRef.uid),
    taskQueue: mainTaskQueue,
    args: [{ ref: proxyRef, searchAttributes: false }],
  });
  const story = storyOf(server, world, handle);
  const told = async (): Promise<void> => {
    try {
      await tell(story);
    } finally {
      // A run ended in the middle of a step would keep the server's clock from skipping in later tests.
      await settled(handle).catch(() => undefined);
      await handle.terminate('the test is over').catch(() => undefined);
    }
  };
  const [first, ...others] = workers;
  const ended = told();
  await Promise.all([
    first?.runUntil(ended),
    ...others.map((worker) => worker.runUntil(ended.catch(() => undefined))),
  ]);
}

const shortSkipMs = 61_000;

/** No step is pending and no decision is due. */
async function settled(handle: ProxyHandle): Promise<void> {
  await eventually(async () => {
    const { raw, status } = await handle.describe();
    if (status.name !== 'RUNNING') return;
    const pending = raw.pendingActivities?.length ?? 0;
    if (pending > 0 || raw.pendingWorkflowTask) throw new Error('the workflow never settled');
  }, 15_000);
}

function storyOf(server: TestWorkflowEnvironment, world: FakeWorld, handle: ProxyHandle): Story {
  let sequence = 0;
  return {
    world,
    handle,
    env: server,
    until: (check, what) =>
      eventually(() => {
        if (!check()) throw new Error(`never came true: ${what}; ${JSON.stringify(world.status)}`);
      }, 15_000),
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
      world.desired = { ...world.desired, generation: world.desired.generation + 1, ...change };
      await handle.signal('desiredChanged', {
        generation: world.desired.generation,
        deleting: world.deleting,
      });
    },
    deleted: async () => {
      world.deleting = true;
      await handle.signal('desiredChanged', { generation: 1, deleting: true });
    },
    state: () => handle.query<ProxyStateView>('state'),
  };
}
