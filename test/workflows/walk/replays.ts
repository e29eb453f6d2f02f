/** After a walk: every run of a Proxy's workflow, ended or not, is gone through once more from its history alone. */
import { Client } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { tracingPlugin } from '../../../worker/runtime/tracingPlugin.ts';
import { installationNames } from './operations.ts';
import type { Ground } from './server.ts';

/** How many runs were replayed. Throws with the name of each that would decide otherwise today, or that broke on its way. */
export async function replayRuns(
  { bundleFile }: Ground,
  { connection }: TestWorkflowEnvironment,
): Promise<number> {
  let runs = 0;
  const wrong: string[] = [];
  for (const namespace of installationNames) {
    const client = new Client({ connection, namespace });
    const proxies = client.workflow.list({ query: 'WorkflowType = "proxy"' });
    const options = {
      workflowBundle: { codePath: bundleFile },
      plugins: [tracingPlugin()],
      namespace,
    };
    for await (const { workflowId, runId, error } of Worker.runReplayHistories(
      options,
      proxies.intoHistories(),
    )) {
      runs += 1;
      if (error !== undefined) wrong.push(`${namespace} ${workflowId} (run ${runId}): ${error.message}`); // prettier-ignore
    }
  }
  if (wrong.length > 0) throw new Error(`runs do not replay:\n${wrong.join('\n')}`);
  return runs;
}
