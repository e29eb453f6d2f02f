/** The columns of the matrix that people and processes cause: lost workers, deletions, changed specs, pauses. */
import assert from 'node:assert/strict';
import { newHaResource } from '../../simulator/endpoints/ha.ts';
import { rows, type Row } from './rows.ts';
import { muted, type MatrixStep } from './stepWorker.ts';
import { queryPauseMs, type Story, type Tamper } from './story.ts';

export interface Course {
  /** VMs of the Proxy that may exist at one time. */
  mostVms: number;
  /** What goes on beside the arc; rejects with what did not hold. */
  happens: Promise<void>;
}

export interface Disturbance {
  name: string;
  /** Why it cannot happen to this step, or null. */
  cannotMeet: (row: Row) => string | null;
  /** Why no fault can meet the step's main request then, or null. */
  forestalls: (row: Row) => string | null;
  /** Prepares it before the story starts. */
  begin: (story: Story, row: Row) => Course;
}

const quiet: Course = { mostVms: 1, happens: Promise.resolve() };
const always = (): null => null;
const notInDeletion = ({ afterDeletion }: Row): string | null =>
  afterDeletion ? 'the deletion came first' : null;
const writesOnly = ({ proxmox }: Row): string | null =>
  proxmox === null || proxmox.method === 'GET' ? 'writes nothing to Proxmox VE' : null;

/** Only the first run of the step is disturbed. */
function firstTime(tamper: Tamper): Tamper {
  let came = false;
  return (visit, go) => {
    if (came) return go();
    came = true;
    return tamper(visit, go);
  };
}

function disturbance(
  name: string,
  cannotMeet: Disturbance['cannotMeet'],
  tamper: (story: Story, row: Row) => Tamper,
  { mostVms = 1, forestalls = always }: Partial<Pick<Disturbance, 'forestalls'> & Course> = {},
): Disturbance {
  return {
    name,
    cannotMeet,
    forestalls,
    begin: (story, row) => {
      story.tamper(row, firstTime(tamper(story, row)));
      return { ...quiet, mostVms };
    },
  };
}

/** Never answers, as a process that is no more. */
async function lost(story: Story): Promise<never> {
  await story.over;
  throw new Error('the story is over');
}

async function deleteNow(story: Story): Promise<void> {
  story.world.records.delete();
  await story.notify();
}

/** Lets `go` come as far as its main request, then does `act` while that is under way. */
async function amid(
  story: Story,
  { proxmox }: Row,
  go: () => Promise<unknown>,
  act: () => Promise<void>,
): Promise<unknown> {
  const { faults, requests } = story.world.simulator;
  const seen = requests.length;
  let ended = false;
  const run = go().finally(() => {
    ended = true;
  });
  run.catch(() => undefined);
  // After the rules of a fault, which acts first.
  if (proxmox !== null) faults.push({ ...proxmox, action: { kind: 'slow', seconds: 20 } });
  const isSent = (): boolean =>
    proxmox === null ||
    requests
      .slice(seen)
      .some(({ method, path }) => method === proxmox.method && proxmox.path.test(path));
  await story.until(() => ended || isSent(), 'the step sends its request');
  await act();
  return run;
}

const frozenAtItsWrite: Disturbance = {
  name: 'worker frozen at its write',
  cannotMeet: writesOnly,
  forestalls: always,
  begin: (story, row) => {
    const done = Promise.withResolvers<void>();
    let came = false;
    story.tamper(row, async (_visit, go) => {
      if (came) return go();
      const ice = story.worker().freeze();
      const late = muted(go);
      let ended = false;
      const outcome = late
        .then(
          () => 'sent',
          (error: unknown) => String(error),
        )
        .finally(() => {
          ended = true;
        });
      await story.until(() => ice.reached() || ended, 'the step is about to write');
      if (!ice.reached()) {
        // A fault was faster. The next run is the one.
        ice.thaw();
        return late;
      }
      came = true;
      story.replaceWorker();
      // Temporal gives the attempt up, and the story goes on without it.
      thawLater(story, row.step, ice.thaw)
        .then(async () => {
          assert.match(await outcome, /nothing was sent/, 'a late write stays where it is');
        })
        .then(done.resolve, done.reject);
      return lost(story);
    });
    return { mostVms: 1, happens: done.promise };
  },
};

/** Thaws once the step has been run by another worker. */
async function thawLater(story: Story, step: MatrixStep, thaw: () => void): Promise<void> {
  const runs = (): number => story.visits.filter((one) => one === step).length;
  const before = runs();
  const beforeAll = story.visits.length;
  await story.until(
    () => runs() > before && story.visits.length > beforeAll + 1,
    `another worker runs ${step}`,
  );
  thaw();
}

function pause(): Disturbance {
  return {
    name: 'pause',
    cannotMeet: always,
    forestalls: always,
    begin: (story, row) => {
      const done = Promise.withResolvers<void>();
      story.tamper(
        row,
        firstTime(async (_visit, go) => {
          story.world.records.change({ paused: true });
          await story.notify();
          unpauseLater(story).then(done.resolve, done.reject);
          return go();
        }),
      );
      return { mostVms: 1, happens: done.promise };
    },
  };
}

/** Observation goes on in a pause. */
function changesNothing(step: string | null): boolean {
  return step === null || step === 'allocateVmid' || step === 'pollAgent';
}

/** While the pause is in force nothing is changed on Proxmox VE, and the status says so. */
async function unpauseLater(story: Story): Promise<void> {
  const { records, simulator } = story.world;
  const paused = (): boolean =>
    story.status()?.conditions.some(({ reason }) => /^(Deletion)?Paused$/.test(reason)) === true;
  await story.until(
    async () => story.ended() || (paused() && changesNothing((await story.state()).step)),
    'the pause is in force',
    queryPauseMs,
  );
  if (story.ended()) return;
  const writes = (): number => simulator.requests.filter(({ method }) => method !== 'GET').length;
  const before = writes();
  // Whatever would be done next is due now.
  await story.signal('retry');
  await story.until(
    () => story.world.records.events.some(({ reason }) => reason === 'RetryRequested'),
    'the retry is seen',
  );
  assert.equal(writes(), before, 'a paused Proxy changes nothing');
  records.change({ paused: false });
  await story.notify();
}

const powerSteps: readonly MatrixStep[] = ['startVm', 'awaitRunning', 'stopVm', 'destroyVm'];

/** Tasks only ask the HA manager then, and end before anything has happened. */
const managedByHa: Disturbance = {
  name: 'VM managed by HA',
  cannotMeet: ({ step, arc }) =>
    powerSteps.includes(step) && arc !== 'aborted' ? null : 'does not hang on the power of a VM',
  forestalls: ({ arc }) => (arc === 'stopped' ? 'the HA manager starts the VM by itself' : null),
  begin: (story) => {
    const { simulator, own } = story.world;
    story.tamper(
      rows.configureVm,
      firstTime(async (_visit, go) => {
        const result = await go();
        for (const { vmid } of own())
          simulator.cluster.ha.resources.set(vmid, newHaResource(vmid, 'stopped'));
        return result;
      }),
    );
    const started = (): boolean => simulator.core.tasks.all.some(({ type }) => type === 'hastart');
    return { mostVms: 1, happens: story.until(started, 'the HA manager is asked for a start') };
  },
};

export const disturbances: readonly Disturbance[] = [
  disturbance('acknowledged late, runs twice', always, () => async (_visit, go) => {
    await go();
    return go();
  }),
  disturbance('worker killed before', always, (story) => () => {
    story.replaceWorker();
    return lost(story);
  }),
  disturbance('worker killed after', always, (story) => async (_visit, go) => {
    await muted(go).catch(() => undefined);
    story.replaceWorker();
    return lost(story);
  }),
  frozenAtItsWrite,
  disturbance(
    'deletion before',
    notInDeletion,
    (story) => async (_visit, go) => {
      await deleteNow(story);
      return go();
    },
    {
      forestalls: ({ step }) =>
        step === 'claimProxy' ? 'deleted before it was claimed: nothing is asked' : null,
    },
  ),
  disturbance(
    'deletion during',
    notInDeletion,
    (story, row) => (_visit, go) => amid(story, row, go, () => deleteNow(story)),
  ),
  disturbance('deletion after', notInDeletion, (story) => async (_visit, go) => {
    const result = await go();
    await deleteNow(story);
    return result;
  }),
  disturbance(
    'spec change during',
    always,
    (story, row) => (_visit, go) =>
      amid(story, row, go, async () => {
        if (story.world.records.object === null) return;
        story.world.records.change({ cloudInit: '#cloud-config\n# changed\n' });
        await story.notify();
      }),
    { mostVms: 3 },
  ),
  pause(),
  managedByHa,
];
