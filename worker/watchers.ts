/** The two activities that live as long as their worker: the prober and the watch of a provider's VMs. */
import { Context } from '@temporalio/activity';
import type { Logger } from 'pino';
import type { StepContext } from '../activities/deps.ts';
import { handOver, toFailure } from '../activities/failure.ts';
import { probeProxies, type ProbeDeps } from '../activities/probeProxies.ts';
import { watchVms, type WatchDeps } from '../activities/watchVms.ts';
import { heartbeatEveryMs } from '../workflows/contract/budgets.ts';
import type { WatchVmsInput } from '../workflows/contract/providerSteps.ts';

export interface Watchers {
  probeProxies(): Promise<void>;
  watchVms(input: WatchVmsInput): Promise<void>;
}

/** `shutdown` hands both over to another worker at once. */
export function createWatchers(
  probing: ProbeDeps,
  watching: WatchDeps,
  shutdown: AbortSignal,
  log: Logger,
): Watchers {
  return {
    probeProxies: () =>
      untilShutdown(shutdown, log, (context) => {
        // Temporal's clock, not this worker's: were that behind the last one's, no signal of ours would count.
        const { currentAttemptScheduledTimestampMs } = Context.current().info;
        const run = new Date(currentAttemptScheduledTimestampMs).toISOString();
        return probeProxies(probing, context, run);
      }),
    watchVms: (input) => {
      const child = log.child({ step: 'watchVms', provider: input.provider });
      return untilShutdown(shutdown, child, (context) => watchVms(watching, context, input));
    },
  };
}

/** Neither writes to Proxmox nor has a budget: its context is only its life. */
async function untilShutdown(
  shutdown: AbortSignal,
  log: Logger,
  watch: (context: StepContext) => Promise<void>,
): Promise<void> {
  const context = Context.current();
  const { cancellationSignal, info } = context;
  const signal = AbortSignal.any([cancellationSignal, shutdown]);
  // Also while a request hangs.
  const alive = setInterval(() => {
    context.heartbeat();
  }, heartbeatEveryMs);
  try {
    await watch({
      call: { signal, writesUntilMs: 0 },
      scheduledAtMs: info.scheduledTimestampMs,
      heartbeat: () => {
        context.heartbeat();
      },
      log,
    });
  } catch (error) {
    throw shutdown.aborted ? handOver() : toFailure(error, cancellationSignal.aborted);
  } finally {
    clearInterval(alive);
  }
}
