/** A history as JSON, by Temporal's own program: the form in which people save one to replay it. */
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { runCommand } from '../../deploy/dev/command.ts';
import { findTool } from '../../deploy/dev/tools.ts';

/** Of one run, or of the present one. Throws with what the program said. */
export async function showHistory(
  { address, namespace }: TestWorkflowEnvironment,
  workflowId: string,
  runId?: string,
): Promise<string> {
  const { path } = await findTool('temporal');
  const { code, stdout, stderr } = await runCommand(path, [
    'workflow',
    'show',
    '--output=json',
    `--address=${address}`,
    `--namespace=${namespace ?? 'default'}`,
    `--workflow-id=${workflowId}`,
    ...(runId === undefined ? [] : [`--run-id=${runId}`]),
  ]);
  if (code === 0) return stdout;
  throw new Error(`the history of ${workflowId} cannot be shown: ${stderr.trim()}`);
}
