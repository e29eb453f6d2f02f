/** One Temporal server for all stories, in real time, and the workers that serve them; who asks decides whose step runs. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Context } from '@temporalio/activity';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import {
  bundleWorkflowCode,
  DefaultLogger,
  makeTelemetryFilterString,
  Runtime,
  Worker,
} from '@temporalio/worker';
import { fileURLToPath } from 'node:url';
import { findTool } from '../../../deploy/dev/tools.ts';
import { tracingPlugin } from '../../../worker/runtime/tracingPlugin.ts';
import {
  mainTaskQueue,
  providerQueue,
  providerWaitQueue,
} from '../../../workflows/contract/messages.ts';
import { stepTraits } from '../../../workflows/contract/stepTable.ts';
import { operatorToken, tokenSecret } from '../../support/stepFixture.ts';
import { endedProxies, replayRuns } from '../../support/replays.ts';
import { makeCa } from '../../support/tls.ts';
import { rows } from './rows.ts';
import { scaledBundle } from './scaledTime.ts';
import type { MatrixStep } from './stepWorker.ts';

type Perform = (step: MatrixStep, input: unknown) => Promise<unknown>;

export interface Desk {
  server: TestWorkflowEnvironment;
  tls: { key: string; cert: string };
  /** Credentials of every story's provider. */
  files: { tokenFile: string; caFile: string };
  /** Steps of this workflow are run by `perform` from now on. */
  serve(workflowId: string, perform: Perform): void;
  /** Every run of every story from its history alone; throws as `replayRuns`. */
  replay(): Promise<number>;
  close(): Promise<void>;
}

/** More than the stories that run at once can have under way, those lost with their worker included. */
const stepsAtOnce = 400;

export async function openDesk(): Promise<Desk> {
  const filter = makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' });
  Runtime.install({
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { filter } },
  });
  const { path } = await findTool('temporal');
  const server = await TestWorkflowEnvironment.createLocal({
    server: {
      executable: { type: 'existing-path', path },
      extraArgs: ['--output=none'],
      log: { format: 'json', level: 'error' },
    },
    client: { plugins: [tracingPlugin()] },
  });
  const workflowsPath = fileURLToPath(new URL('../../../workflows/index.ts', import.meta.url));
  const workflowBundle = await bundleWorkflowCode({
    workflowsPath,
    plugins: [tracingPlugin()],
    logger: new DefaultLogger('WARN'),
    webpackConfigHook: scaledBundle,
  });
  const stories = new Map<string, Perform>();
  const activities = Object.fromEntries(
    Object.keys(stepTraits).map((name) => [name, stepOf(stories, name)]),
  );
  const connection = server.nativeConnection;
  const common = { connection, activities, maxConcurrentActivityTaskExecutions: stepsAtOnce };
  const workers = await Promise.all([
    Worker.create({
      ...common,
      taskQueue: mainTaskQueue,
      workflowBundle,
      plugins: [tracingPlugin()],
    }),
    Worker.create({ ...common, taskQueue: providerQueue('pve') }),
    Worker.create({ ...common, taskQueue: providerWaitQueue('pve') }),
  ]);
  const running = Promise.all(workers.map((worker) => worker.run()));
  running.catch(() => undefined);
  const ca = await makeCa();
  const tokenFile = join(ca.dir, 'token');
  writeFileSync(tokenFile, `${operatorToken}=${tokenSecret}\n`);
  return {
    server,
    tls: await ca.issue(['127.0.0.1']),
    files: { tokenFile, caFile: ca.caFile },
    serve: (workflowId, perform) => void stories.set(workflowId, perform),
    replay: () => replayRuns(workflowBundle, server.client.workflow.list({ query: endedProxies })),
    close: async () => {
      for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
      await running;
      await server.teardown();
      rmSync(ca.dir, { recursive: true });
    },
  };
}

function stepOf(
  stories: ReadonlyMap<string, Perform>,
  name: string,
): (input: unknown) => Promise<unknown> {
  return async (input) => {
    const { workflowExecution } = Context.current().info;
    const perform = stories.get(workflowExecution?.workflowId ?? '');
    if (perform === undefined) throw new Error(`no story of ${workflowExecution?.workflowId}`);
    if (!isMatrixStep(name)) throw new Error(`${name} has no row`);
    return perform(name, input);
  };
}

function isMatrixStep(name: string): name is MatrixStep {
  return name in rows;
}
