/** After a walk: every run of a Proxy's workflow that is over is gone through once more from its history alone. */
import { Client } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { endedProxies, replayRuns } from '../../support/replays.ts';
import { installationNames } from './operations.ts';
import type { Ground } from './server.ts';

/** How many runs were replayed, of both installations. Throws as `replayRuns`. */
export async function replayWalk(
  { bundleFile: codePath }: Ground,
  { connection }: TestWorkflowEnvironment,
): Promise<number> {
  let runs = 0;
  for (const namespace of installationNames) {
    const { workflow } = new Client({ connection, namespace });
    runs += await replayRuns({ codePath }, workflow.list({ query: endedProxies }));
  }
  return runs;
}
