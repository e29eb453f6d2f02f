/** Keeps the one `watchVms` activity of a provider running beside the checks, whatever happens to its worker. */
import { CancellationScope, isCancellation, log, sleep } from '@temporalio/workflow';
import { retryDelayMs } from './contract/budgets.ts';
import { readFailure } from './failures.ts';
import { runWatch } from './steps.ts';

export interface Watching {
  /** Ends the activity, before the run continues as new or ends. */
  stop(): Promise<void>;
}

/** Starts it; it never ends by itself. */
export function startWatching(provider: string): Watching {
  const scope = new CancellationScope({ cancellable: true });
  const ended = scope.run(() => watchOn(provider)).catch(unlessCancelled);
  return {
    stop: async () => {
      scope.cancel();
      await ended;
    },
  };
}

async function watchOn(provider: string): Promise<never> {
  for (let failures = 0; ;) {
    const startedMs = Date.now();
    try {
      await runWatch(provider);
    } catch (error) {
      const { facts } = readFailure(error);
      log.warn('the watch of the VMs was interrupted', { reason: facts.reason });
    }
    // One that lived for long was not in the way of itself.
    failures = Date.now() - startedMs > retryDelayMs(failures + 1) * 2 ? 1 : failures + 1;
    await sleep(retryDelayMs(failures));
  }
}

function unlessCancelled(error: unknown): void {
  if (!isCancellation(error)) throw error;
}
