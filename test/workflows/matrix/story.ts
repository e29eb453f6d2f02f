/** One Proxy's workflow in a world of its own, with whatever happens at one of its steps. */
import { setTimeout as delay } from 'node:timers/promises';
import { WorkflowNotFoundError, type WorkflowHandle } from '@temporalio/client';
import {
  mainTaskQueue,
  proxyWorkflowId,
  type HealthSignal,
  type ProxyStateView,
} from '../../../workflows/contract/messages.ts';
import type { ProxyStatus } from '../../../workflows/contract/proxy.ts';
import type { proxy } from '../../../workflows/index.ts';
import type { Desk } from './desk.ts';
import type { Row } from './rows.ts';
import { createStepWorker, type MatrixStep, type StepWorker } from './stepWorker.ts';
import { createWorld, type Circumstances, type World } from './world.ts';

/** One run of one step. */
export interface Visit {
  step: MatrixStep;
  input: unknown;
  story: Story;
}
/** What happens around a run of a step; `go` runs it. */
export type Tamper = (visit: Visit, go: () => Promise<unknown>) => Promise<unknown>;

export interface Story {
  world: World;
  /** The process that runs steps now. */
  worker: () => StepWorker;
  /** That one is lost; another one takes its place. */
  replaceWorker: () => void;
  /** Around every run that a row is about, the last one added outermost. */
  tamper: (row: Row, tamper: Tamper) => void;
  start: () => Promise<void>;
  /** The run is gone without a trace but what it published. */
  loseRun: () => Promise<void>;
  ended: () => boolean;
  result: () => Promise<Awaited<ReturnType<typeof proxy>>>;
  status: () => ProxyStatus | undefined;
  state: () => Promise<ProxyStateView>;
  /** As the controller does after every change of the object. */
  notify: () => Promise<void>;
  signal: (name: 'retry' | 'forceDelete' | 'providerChanged') => Promise<void>;
  /** As the watch does in every round in which a VM is not as the status says. */
  observe: () => Promise<void>;
  /** Waits for `check`; fails with what the story knows when it does not come true. */
  until: (check: () => boolean | Promise<boolean>, what: string, pauseMs?: number) => Promise<void>;
  /** Steps that never answer wait for this. */
  over: Promise<void>;
  /** Every step that ran, in order. */
  visits: MatrixStep[];
}

/** Far more than any story needs, so that only what is stuck runs into it. */
const patienceMs = 90_000;

/** Between two questions to the workflow, each of which is a task for its worker. */
export const queryPauseMs = 100;

/** Tells one story and takes everything down. */
export async function tellStory<T>(
  desk: Desk,
  circumstances: Circumstances,
  tell: (story: Story) => Promise<T>,
): Promise<T> {
  const world = await createWorld(desk.tls, circumstances);
  const over = Promise.withResolvers<void>();
  const { story, close } = createStory(desk, world, over.promise);
  try {
    return await tell(story);
  } finally {
    over.resolve();
    await close();
    await world.close();
  }
}

function createStory(
  desk: Desk,
  world: World,
  over: Promise<void>,
): { story: Story; close: () => Promise<void> } {
  const { server, files } = desk;
  const { client } = server;
  const { ref, records } = world;
  const workflowId = proxyWorkflowId(ref.uid);
  const workers = [createStepWorker(world, files)];
  const worker = (): StepWorker => {
    const current = workers.at(-1);
    if (current === undefined) throw new Error('no worker');
    return current;
  };
  const tampers: { row: Row; tamper: Tamper }[] = [];
  const visits: MatrixStep[] = [];
  let run: WorkflowHandle<typeof proxy> | null = null;
  let end: 'running' | 'ended' | Error = 'running';

  const handle = (): WorkflowHandle<typeof proxy> => {
    if (run === null) throw new Error('the workflow was not started');
    return run;
  };
  const story: Story = {
    world,
    worker,
    replaceWorker: () => void workers.push(createStepWorker(world, files)),
    tamper: (row, tamper) => void tampers.push({ row, tamper }),
    start: async () => {
      end = 'running';
      const started = await client.workflow.start<typeof proxy>('proxy', {
        workflowId,
        taskQueue: mainTaskQueue,
        args: [{ ref, searchAttributes: false }],
      });
      run = started;
      started.result().then(
        () => {
          if (run === started) end = 'ended';
        },
        (error: unknown) => {
          if (run === started) end = error instanceof Error ? error : new Error(String(error));
        },
      );
    },
    loseRun: async () => {
      const lost = handle();
      run = null;
      await lost.terminate('lost');
    },
    ended: () => end === 'ended',
    result: () => handle().result(),
    status: () => records.statuses.at(-1),
    state: () => handle().query<ProxyStateView>('state'),
    notify: async () => {
      const generation = records.object?.metadata.generation ?? 0;
      const deleting = records.object?.metadata.deletionTimestamp !== undefined;
      await handle().signal('desiredChanged', { generation, deleting }).catch(unlessEnded);
    },
    signal: (name) => handle().signal(name),
    observe: () => handle().signal('observed', {}).catch(unlessEnded),
    until: async (check, what, pauseMs = 10) => {
      const endMs = Date.now() + patienceMs;
      for (;;) {
        if (await check()) return;
        if (end instanceof Error)
          throw new Error(`the workflow failed: ${end.message}`, { cause: end });
        if (Date.now() > endMs) throw new Error(`never came true: ${what}; ${describe(story)}`);
        await delay(pauseMs);
      }
    },
    over,
    visits,
  };
  desk.serve(workflowId, (step, input) => {
    visits.push(step);
    const visit = { step, input, story };
    let go = (): Promise<unknown> => worker().run(step, input);
    for (const { row, tamper } of tampers) {
      if (row.step !== step || !row.means(input, story.status())) continue;
      const inner = go;
      go = () => tamper(visit, inner);
    }
    return go();
  });
  probeAddresses(story, () => (run === null ? undefined : handle()));
  return {
    story,
    close: async () => {
      await run?.terminate('the story is over').catch(() => undefined);
      await Promise.all(workers.map((one) => one.close()));
    },
  };
}

/** An object may be gone, and its run with it, before the news of its deletion arrives. */
function unlessEnded(error: unknown): void {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}

/** Every address that is published answers while a VM runs, as the prober finds out. */
function probeAddresses(
  { world: { records, own } }: Story,
  handle: () => WorkflowHandle | undefined,
): void {
  let sequence = 0;
  const told = new Set<string>();
  records.published = ({ ip, healthy, replacement }) => {
    if (ip !== null && healthy !== true) told.delete(ip);
    for (const address of [ip, replacement?.ip]) {
      if (typeof address !== 'string' || told.has(address)) continue;
      if (!own().some(({ running }) => running !== null)) continue;
      told.add(address);
      sequence += 1;
      const signal: HealthSignal = {
        run: 'run-1',
        sequence,
        ip: address,
        port: 3128,
        healthy: true,
        reason: 'ProbeSucceeded',
        message: '204 through the proxy',
      };
      // A run that ended meanwhile needs no news.
      handle()
        ?.signal('health', signal)
        .catch(() => undefined);
    }
  };
}

/** What is known when a story does not go on. */
function describe(story: Story): string {
  const { world, visits } = story;
  const status = story.status();
  const vms = world.own().map(({ vmid, config, running }) => ({
    vmid,
    name: config.get('name'),
    lock: config.get('lock'),
    running: running !== null,
  }));
  const requests = world.simulator.requests
    .filter(({ method }) => method !== 'GET')
    .slice(-12)
    .map(({ method, path, status: code, reason }) => `${method} ${path} → ${code} ${reason}`);
  const shown = { phase: status?.phase, message: status?.message, conditions: status?.conditions };
  const seeds = world.seeds().map(({ name }) => name);
  return JSON.stringify({ shown, vms, seeds, requests, visits: visits.slice(-15) }, null, 1);
}
