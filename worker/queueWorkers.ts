/** The Temporal workers of this process: one for workflows and Kubernetes, two for every provider. */
import { Worker, type NativeConnection, type WorkerOptions } from '@temporalio/worker';
import type { Logger } from 'pino';
import { mainTaskQueue, providerQueue, providerWaitQueue } from '../workflows/contract/messages.ts';

/** Short steps of a provider at a time; as many as it has sockets for steps (design §4). */
const stepsAtOnce = 8;
/** Waits hold no socket between two looks, so many may wait. */
const waitsAtOnce = 200;
/** Steps under way get this long to end when the process is told to stop. */
const drainMs = 25_000;
const forceMs = 30_000;

/** Beside the names of providers, of which none is empty: one may well be called «main». */
const mainName = '';

export interface QueueWorkersOptions {
  connection: NativeConnection;
  namespace: string;
  plugins: NonNullable<WorkerOptions['plugins']>;
  log: Logger;
}

interface Running {
  worker: Worker;
  done: Promise<void>;
}

/** Starts and stops workers by queue; `failed` rejects when one of them breaks. */
export class QueueWorkers {
  readonly #options: QueueWorkersOptions;
  readonly #running = new Map<string, Running[]>();
  readonly #broken = Promise.withResolvers<never>();

  constructor(options: QueueWorkersOptions) {
    this.#options = options;
    // Looked at by the main program; until then a failure must not end the process unseen.
    this.#broken.promise.catch(() => undefined);
  }

  get failed(): Promise<never> {
    return this.#broken.promise;
  }

  /** The one worker that runs workflows. */
  async startMain(
    workflowBundle: NonNullable<WorkerOptions['workflowBundle']>,
    activities: object,
  ): Promise<void> {
    await this.#start(mainName, [
      { taskQueue: mainTaskQueue, workflowBundle, activities, maxCachedWorkflows: 1_000 },
    ]);
  }

  async startProvider(name: string, activities: object): Promise<void> {
    if (this.#running.has(name)) return;
    await this.#start(name, [
      {
        taskQueue: providerQueue(name),
        activities,
        maxConcurrentActivityTaskExecutions: stepsAtOnce,
      },
      {
        taskQueue: providerWaitQueue(name),
        activities,
        maxConcurrentActivityTaskExecutions: waitsAtOnce,
      },
    ]);
    this.#options.log.info({ provider: name }, 'provider served');
  }

  /** Names of the providers that are served. */
  providers(): string[] {
    return [...this.#running.keys()].filter((name) => name !== mainName);
  }

  /** Ends the two workers of a provider; steps under way finish first. */
  async stopProvider(name: string): Promise<void> {
    await this.#stop(name);
    this.#options.log.info({ provider: name }, 'provider no longer served');
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((name) => this.#stop(name)));
  }

  async #start(name: string, options: Omit<WorkerOptions, 'connection'>[]): Promise<void> {
    const { connection, namespace, plugins } = this.#options;
    const started: Running[] = [];
    for (const one of options) {
      const worker = await Worker.create({
        ...one,
        connection,
        namespace,
        plugins,
        shutdownGraceTime: drainMs,
        shutdownForceTime: forceMs,
      });
      const done = worker.run();
      done.catch((error: unknown) => {
        this.#broken.reject(error);
      });
      started.push({ worker, done });
    }
    this.#running.set(name, started);
  }

  async #stop(name: string): Promise<void> {
    const running = this.#running.get(name) ?? [];
    this.#running.delete(name);
    for (const { worker } of running) {
      if (worker.getState() === 'RUNNING') worker.shutdown();
    }
    await Promise.allSettled(running.map(({ done }) => done));
  }
}
