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
  proxyWorkflowId,
  proxyWorkflowType,
  signalNames,
  type CollectOrphansInput,
  type ProxyWorkflowInput,
} from '../workflows/contract/messages.ts';

/** Makes the Schedule of a provider where there is none; one that is paused stays so. */
export async function ensureCollection(client: Client, provider: string): Promise<void> {
  const input: CollectOrphansInput = { provider };
  const scheduleId = collectScheduleId(provider);
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
      state: {
        note: `Collects VMs and seeds of provider ${provider} whose Proxy is gone. Pause it to stop that; docs/operations.md.`,
      },
    });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
  }
}

/** Removes the Schedule of a provider; no failure when there is none. A round under way ends by itself. */
export async function dropCollection(client: Client, provider: string): Promise<void> {
  try {
    await client.schedule.getHandle(collectScheduleId(provider)).delete();
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
      signal: signalNames.orphan,
      signalArgs: [orphan],
    });
  };
}
