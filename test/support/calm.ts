/** When a workflow of a story is at rest, read from what the server tells of it. */
import type { WorkflowHandle } from '@temporalio/client';
import { eventually } from './eventually.ts';
import { isHeld } from './heldSteps.ts';

type Handle = Pick<WorkflowHandle, 'describe' | 'fetchHistory'>;

/** No step is pending and no decision is due. */
export async function settled(handle: Handle): Promise<void> {
  await eventually(async () => {
    const { raw, status } = await handle.describe();
    if (status.name !== 'RUNNING') return;
    const pending = raw.pendingActivities?.length ?? 0;
    if (pending > 0 || (await decisionIsDue(handle))) throw new Error('the workflow never settled');
  }, 15_000);
}

/** A step that nobody took for so long (real time) is in a queue that nobody serves. */
const unservedAfterMs = 1_000;
/** `PENDING_ACTIVITY_STATE_SCHEDULED` of Temporal's API. */
const scheduled = 1;

/**
 * No step is about to end by itself: those that are pending are held at a gate, wait for their next attempt, or for a worker
 * that is not there. A workflow that cancels a step which ended while it was deciding gets no answer from the test server,
 * ever (docs/decisions/0013).
 */
export async function calm(handle: Handle): Promise<void> {
  const begun = Date.now();
  await eventually(async () => {
    // The history is the same before and after, so what is pending is of that moment.
    const first = await handle.fetchHistory();
    const { raw, status, runId } = await handle.describe();
    if (status.name !== 'RUNNING') return;
    const patient = Date.now() - begun < unservedAfterMs;
    const restless = (raw.pendingActivities ?? []).filter(
      ({ activityId, attempt, state }) =>
        !isHeld(runId, activityId ?? '') &&
        (attempt ?? 1) < 2 &&
        (patient || Number(state) !== scheduled),
    );
    const last = await handle.fetchHistory();
    const still = first.events?.length === last.events?.length;
    if (still && restless.length === 0 && !decisionIsDueIn(last)) return;
    const names = restless.map(({ activityType }) => activityType?.name).join();
    throw new Error(`never came to rest: ${names}`);
  }, 15_000);
}

/** Read from the history: the test server does not tell a decision that has begun. */
async function decisionIsDue(handle: Handle): Promise<boolean> {
  return decisionIsDueIn(await handle.fetchHistory());
}

function decisionIsDueIn({ events }: Awaited<ReturnType<Handle['fetchHistory']>>): boolean {
  const last = events?.findLast(
    (event) =>
      event.workflowTaskScheduledEventAttributes ??
      event.workflowTaskStartedEventAttributes ??
      event.workflowTaskCompletedEventAttributes,
  );
  return !last?.workflowTaskCompletedEventAttributes;
}
