/** Histories of a test gone through once more: whatever happened in it, the workflow must decide the same again. */
import type { WorkflowExecutionInfo, WorkflowHandle } from '@temporalio/client';
import { Worker, type WorkflowBundleOption } from '@temporalio/worker';
import { tracingPlugin } from '../../worker/runtime/tracingPlugin.ts';

/** Of the runs of Proxies that are over. The replay of a decision that is half made may wait for ever. */
export const endedProxies = 'WorkflowType = "proxy" AND ExecutionStatus != "Running"';

type Executions = AsyncIterable<WorkflowExecutionInfo> & {
  intoHistories: () => Parameters<typeof Worker.runReplayHistories>[1];
};

/** How many runs were replayed. Throws with the name of each that would decide otherwise now, or that broke on its way. */
export async function replayRuns(
  workflowBundle: WorkflowBundleOption,
  executions: Executions,
): Promise<number> {
  let runs = 0;
  const wrong: string[] = [];
  const options = { workflowBundle, plugins: [tracingPlugin()] };
  const results = Worker.runReplayHistories(options, executions.intoHistories());
  for await (const { workflowId, runId, error } of results) {
    runs += 1;
    if (error !== undefined) wrong.push(`${workflowId} (run ${runId}): ${error.message}`);
  }
  if (wrong.length > 0) throw new Error(`runs do not replay:\n${wrong.join('\n')}`);
  return runs;
}

/** The same for one run, which must be over. */
export async function replayRun(
  workflowBundle: WorkflowBundleOption,
  handle: Pick<WorkflowHandle, 'workflowId' | 'fetchHistory'>,
): Promise<void> {
  const options = { workflowBundle, plugins: [tracingPlugin()] };
  await Worker.runReplayHistory(options, await handle.fetchHistory(), handle.workflowId);
}
