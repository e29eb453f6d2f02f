/** The Schedule of each provider that collects its orphans, and what the collection asks of Temporal and Kubernetes. */
import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
  type Client,
} from '@temporalio/client';
import type { SendOrphan } from '../activities/signalOrphan.ts';
import { collectEveryMs } from '../workflows/contract/budgets.ts';
import {
  collectScheduleId,
  collectWorkflowType,
  mainTaskQueue,
  proxyWorkflowDetails,
  proxyWorkflowId,
  proxyWorkflowType,
  signalNames,
  type CollectOrphansInput,
  type ProxyWorkflowInput,
} from '../workflows/contract/messages.ts';

/** Note of a Schedule that `restCollection` paused, by which `ensureCollection` knows it. */
const restNote = 'No worker serves the provider; the collection goes on when one does.';

/** Makes the Schedule of a provider where there is none, and wakes one that rests; one that a person paused stays so. */
export async function ensureCollection(client: Client, provider: string): Promise<void> {
  const input: CollectOrphansInput = { provider };
  const scheduleId = collectScheduleId(provider);
  const note = `Collects VMs and seeds of provider ${provider} whose Proxy is gone. Pause it to stop that; docs/operations.md.`;
  try {
    await client.schedule.create({
      scheduleId,
      spec: { intervals: [{ every: collectEveryMs }] },
      // Two rounds at a time would each take the other's work for done; what was missed is seen by the next.
      policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 minute' },
      action: {
        type: 'startWorkflow',
        workflowType: collectWorkflowType,
        workflowId: scheduleId,
        taskQueue: mainTaskQueue,
        args: [input],
        staticSummary: `collects orphans of provider ${provider}`,
      },
      state: { note },
    });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    const schedule = client.schedule.getHandle(scheduleId);
    const { state } = await schedule.describe();
    if (state.paused && state.note === restNote) await schedule.unpause(note);
  }
}

/**
 * Pauses the Schedule of a provider that nobody serves; no failure when there is none. It is not removed: the last result
 * of its rounds is where an alarm stands. A round under way ends by itself.
 */
export async function restCollection(client: Client, provider: string): Promise<void> {
  const schedule = client.schedule.getHandle(collectScheduleId(provider));
  try {
    const { state } = await schedule.describe();
    if (!state.paused) await schedule.pause(restNote);
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
  }
}

/** Signals `orphan` to the run of a UID, starting one where there is none. */
export function orphanSender(client: Client): SendOrphan {
  return async (owner, orphan) => {
    // Whether search attributes are registered is the controller's to know; a run of this kind does without.
    const input: ProxyWorkflowInput = { ref: owner, searchAttributes: false };
    await client.workflow.signalWithStart(proxyWorkflowType, {
      workflowId: proxyWorkflowId(owner.uid),
      taskQueue: mainTaskQueue,
      args: [input],
      staticSummary: `${owner.namespace}/${owner.name}`,
      staticDetails: proxyWorkflowDetails,
      signal: signalNames.orphan,
      signalArgs: [orphan],
    });
  };
}
