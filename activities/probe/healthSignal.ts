/** Sends the signal `health` to a Proxy's workflow. */
import { WorkflowNotFoundError } from '@temporalio/client';
import type { Client } from '@temporalio/client';
import { signalNames } from '../../workflows/contract/messages.ts';
import type { HealthSignal } from '../../workflows/contract/messages.ts';

/** Without a bound, a call to a Temporal that is away blocks for the client's own 20 s of retries. */
const deadlineMs = 10_000;

/** The `signal` of `ProbeDeps`: a run that does not exist is no failure, the controller starts it again. */
export function createHealthSignal(
  client: Client,
): (workflowId: string, health: HealthSignal) => Promise<void> {
  return async (workflowId, health) => {
    const handle = client.workflow.getHandle(workflowId);
    try {
      await client.connection.withDeadline(Date.now() + deadlineMs, () =>
        handle.signal(signalNames.health, health),
      );
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
  };
}
