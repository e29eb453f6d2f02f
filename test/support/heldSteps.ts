/** Fake steps that wait until a story lets them go. */
import { CancelledFailure, Context } from '@temporalio/activity';

const held = new Set<string>();

/** Whether that step waits inside `waitHere`, so that it cannot end by itself meanwhile. */
export function isHeld(runId: string, activityId: string): boolean {
  return held.has(`${runId}/${activityId}`);
}

/** A wait inside a fake step that ends when `until` resolves or the step is cancelled, as `awaitTask` does. */
export async function waitHere(until: Promise<void>): Promise<void> {
  const context = Context.current();
  const { workflowExecution, activityId } = context.info;
  const key = `${workflowExecution?.runId}/${activityId}`;
  held.add(key);
  const beat = setInterval(() => {
    context.heartbeat();
  }, 50);
  try {
    await Promise.race([
      until,
      context.cancelled.catch((error: unknown) => {
        throw error instanceof CancelledFailure ? error : new CancelledFailure('cancelled');
      }),
    ]);
  } finally {
    held.delete(key);
    clearInterval(beat);
  }
}
