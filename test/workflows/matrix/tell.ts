/** The three arcs of a story, and one cell of the matrix: an arc with something in it, and everything checked. */
import assert from 'node:assert/strict';
import { powerOff } from '../../simulator/power.ts';
import {
  expectCleanSlate,
  expectNoHarm,
  expectOneVm,
  expectRetained,
  leftoversOf,
  withoutLeftovers,
} from './checks.ts';
import type { Desk } from './desk.ts';
import type { Course, Disturbance } from './disturbances.ts';
import type { Fault } from './faults.ts';
import { lastAndLift, meet, type Read } from './meet.ts';
import { rows, type Arc, type RowName } from './rows.ts';
import { tellStory, type Story } from './story.ts';

export interface Cell {
  row: RowName;
  fault: Fault | null;
  /** `null` without a fault. */
  lasting: boolean;
  disturbance: Disturbance | null;
}

/** Between two rounds of the watch. */
const observationMs = 250;

const undisturbed: Course = { mostVms: 1, happens: Promise.resolve() };

/** Tells the story of one cell. Returns what a user could read meanwhile. Throws what did not hold. */
export async function tellCell(desk: Desk, cell: Cell): Promise<Read> {
  const { fault, lasting, disturbance } = cell;
  const row = rows[cell.row];
  const circumstances = {
    abortClones: row.arc === 'aborted',
    deletionPolicy: row.arc === 'retained' ? ('Retain' as const) : ('Delete' as const),
  };
  return tellStory(desk, circumstances, async (story) => {
    const met = fault === null ? null : meet(story, row, fault, lasting);
    const course = disturbance?.begin(story, row) ?? undisturbed;
    let over = false;
    const arc = tellArc(story, row.arc).finally(() => {
      over = true;
    });
    arc.catch(() => undefined);
    const watch =
      lasting && fault !== null && met !== null
        ? lastAndLift(story, row, fault, met, () => over)
        : Promise.resolve(null);
    const [, read] = await Promise.all([arc, watch, happened(story, arc, course)]);
    if (met !== null) assert.ok(met.hits() > 0, 'the fault was never met');
    const twoAtOnce = row.arc === 'replacement' || leftoversOf(story).length > 0;
    expectNoHarm(story, Math.max(course.mostVms, twoAtOnce ? 2 : 1));
    return read;
  });
}

/** A story at whose end what was to disturb it has not come proves nothing. */
async function happened(story: Story, arc: Promise<void>, { happens }: Course): Promise<void> {
  let settled = false;
  const settle = (): void => {
    settled = true;
  };
  happens.then(settle, settle);
  const bounded = arc.then(() => story.until(() => settled, 'what was to disturb the story came'));
  bounded.catch(() => undefined);
  await Promise.race([happens, bounded]);
  await happens;
}

/**
 * Ends with the clean slate, or with what is to be retained. A disturbance may delete the Proxy, or change its spec, at
 * any moment.
 */
async function tellArc(story: Story, arc: Arc): Promise<void> {
  if (arc === 'aborted') return tellAborted(story);
  const { world, until } = story;
  const { records } = world;
  const deleting = (): boolean =>
    records.object?.metadata.deletionTimestamp !== undefined || records.object === null;
  await story.start();
  await until(() => deleting() || isReady(story), 'Ready');
  if (!deleting() && arc === 'replacement') {
    records.change({ placement: { machineType: 'big', image: 'debian-13' } });
    await story.notify();
  }
  while (!deleting() && !(await isAsWanted(story)));
  if (arc === 'untagged' || arc === 'stopped') {
    await meddle(story, arc, deleting);
    while (!deleting() && !(await isAsWanted(story)));
  }
  if (arc === 'forgotten') await story.loseRun();
  if (!deleting()) records.delete();
  if (arc === 'forgotten') await story.start();
  else if (!story.ended()) await story.notify();
  await until(() => story.ended(), 'the Proxy is gone');
  await (arc === 'retained' ? expectRetained(story) : expectCleanSlate(story));
}

/** Somebody changes the VM that serves, and the watch tells of it until it is as it was. */
async function meddle(
  story: Story,
  arc: 'untagged' | 'stopped',
  deleting: () => boolean,
): Promise<void> {
  const { simulator, own } = story.world;
  const [vm] = withoutLeftovers(story);
  assert.ok(vm, 'a VM');
  const tags = vm.config.get('tags');
  if (arc === 'untagged') vm.config.delete('tags');
  else powerOff(simulator.core, vm);
  const isMended = (): boolean =>
    !own().includes(vm) || (vm.config.get('tags') === tags && vm.running !== null);
  await story.until(
    async () => {
      if (deleting() || isMended()) return true;
      await story.observe();
      return false;
    },
    'the VM is mended',
    observationMs,
  );
}

/** The clone would never end, so that only its abortion lets the Proxy go. */
async function tellAborted(story: Story): Promise<void> {
  const { records, simulator } = story.world;
  const action = { kind: 'task', hang: true } as const;
  simulator.faults.push({ method: 'POST', path: /\/clone$/, action });
  await story.start();
  await story.until(() => story.visits.includes('awaitTask'), 'the clone runs');
  records.delete();
  await story.notify();
  await story.until(() => story.ended(), 'the Proxy is gone');
  await expectCleanSlate(story);
}

/** `false` when what is wanted changed in the middle of the check. */
async function isAsWanted(story: Story): Promise<boolean> {
  const generation = (): number | null => {
    const { deletionTimestamp, generation: now = 0 } = story.world.records.object?.metadata ?? {};
    return deletionTimestamp === undefined ? now : null;
  };
  await story.until(() => generation() === null || isReady(story), 'Ready as the spec says now');
  const before = generation();
  try {
    await expectOneVm(story);
  } catch (error) {
    if (generation() === before) throw error;
    return false;
  }
  return true;
}

/** Ready, and with the spec that is wanted now. */
function isReady(story: Story): boolean {
  const status = story.status();
  const generation = story.world.records.object?.metadata.generation;
  return (
    status?.phase === 'Ready' &&
    status.specHash === status.desiredSpecHash &&
    status.observedGeneration === generation
  );
}
