/** The workers of a story: one for workflows and Kubernetes, one for each queue of its provider, as in production. */
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker, type WorkerOptions, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { tracingPlugin } from '../../worker/runtime/tracingPlugin.ts';
import {
  mainTaskQueue,
  providerQueue,
  providerWaitQueue,
} from '../../workflows/contract/messages.ts';

export interface WorkflowWorkers {
  /** Rejects when a worker breaks; never resolves. */
  failed: Promise<never>;
  /** Shuts them down as a rollout does, steps under way included, and starts new ones. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export interface WorkflowWorkersOptions {
  server: TestWorkflowEnvironment;
  bundle: WorkflowBundleWithSourceMap;
  activities: object;
  /** 0: no run is kept, so every workflow task replays its history from the start. */
  maxCachedWorkflows?: number;
}

interface Generation {
  workers: Worker[];
  ended: Promise<unknown>;
}

/** Starts them and returns when they poll. */
export async function startWorkflowWorkers(
  options: WorkflowWorkersOptions,
): Promise<WorkflowWorkers> {
  const broken = Promise.withResolvers<never>();
  broken.promise.catch(() => undefined);
  const start = async (): Promise<Generation> => {
    const workers = await Promise.all(optionsOf(options).map((one) => Worker.create(one)));
    const ended = Promise.all(workers.map((worker) => worker.run()));
    ended.catch(broken.reject);
    return { workers, ended };
  };
  const stop = async ({ workers, ended }: Generation): Promise<void> => {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
    await ended;
  };
  let current = await start();
  return {
    failed: broken.promise,
    restart: async () => {
      await stop(current);
      current = await start();
    },
    stop: () => stop(current),
  };
}

function optionsOf({
  server,
  bundle,
  activities,
  maxCachedWorkflows,
}: WorkflowWorkersOptions): WorkerOptions[] {
  const connection = server.nativeConnection;
  const main: WorkerOptions = {
    connection,
    taskQueue: mainTaskQueue,
    workflowBundle: bundle,
    activities,
    plugins: [tracingPlugin()],
    ...(maxCachedWorkflows === undefined ? {} : { maxCachedWorkflows }),
  };
  const queues = [providerQueue('pve'), providerWaitQueue('pve')];
  return [main, ...queues.map((taskQueue) => ({ connection, taskQueue, activities }))];
}
