/** Keeps the one `probeProxies` activity running, whatever happens to its worker. */
import { continueAsNew, log, sleep, workflowInfo } from '@temporalio/workflow';
import { retryDelayMs } from './contract/budgets.ts';
import { readFailure } from './failures.ts';
import { runProbes } from './steps.ts';

/** Never ends by itself; a fresh run takes over before the history grows large. */
export async function probes(): Promise<void> {
  for (let failures = 0; ;) {
    try {
      await runProbes();
      failures = 0;
    } catch (error) {
      const failure = readFailure(error);
      failures += 1;
      log.warn('probing was interrupted', { reason: failure.facts.reason, attempt: failures });
      await sleep(retryDelayMs(failures));
    }
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof probes>();
  }
}
