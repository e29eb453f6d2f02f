/** The workflow that keeps the prober running. */
import { ApplicationFailure } from '@temporalio/common';
import { eventually } from '../../support/eventually.ts';
import { waitHere } from '../../support/heldSteps.ts';
import { onServer, type StorySettings } from '../../support/workflowHarness.ts';
import { mainTaskQueue, probesWorkflowId } from '../../../workflows/contract/messages.ts';
import type { probes } from '../../../workflows/index.ts';
import type { Recording } from '../recordedStory.ts';
import { showHistory } from '../showHistory.ts';

const broken = ApplicationFailure.create({
  type: 'Transient',
  nonRetryable: true,
  message: 'the list of Proxies cannot be read',
  details: [{ reason: 'KubernetesUnavailable', scope: 'proxy' }],
});

/** Records `probes` from its start until the prober fails no more. */
function recordProbes(failures: number, settings: StorySettings): Recording {
  return async (keep, name) => {
    const told = Promise.withResolvers<void>();
    let runs = 0;
    const probeProxies = async (): Promise<void> => {
      runs += 1;
      if (runs <= failures) throw broken;
      await waitHere(told.promise);
    };
    await onServer({ probeProxies }, settings, async (server) => {
      const { client } = server;
      const { firstExecutionRunId: first } = await client.workflow.start<typeof probes>('probes', {
        workflowId: probesWorkflowId,
        taskQueue: mainTaskQueue,
      });
      await eventually(() => runs > failures, 30_000);
      keep(name, await showHistory(server, probesWorkflowId, first));
      told.resolve();
      await client.workflow.getHandle(probesWorkflowId).terminate('recorded');
    });
  };
}

export const probesRecordings: Record<string, Recording> = {
  probesInterrupted: recordProbes(1, {}),
  probesContinuedAsNew: recordProbes(2, { suggestContinueAsNewAt: 10 }),
};
