/** The only door to activities: step → queue, time limits, retry policy and summary. */
import { proxyActivities, type ActivityOptions, type RetryPolicy } from '@temporalio/workflow';
import {
  heartbeatSlackMs,
  kubernetesBoundMs,
  probesHeartbeatMs,
  readRetryMs,
  scheduleToStartMs,
  slackMs,
  temporalSilenceMs,
  waitBudgets,
  waitHeartbeatMs,
  watchHeartbeatMs,
} from './contract/budgets.ts';
import { errorClasses } from './contract/errors.ts';
import { mainTaskQueue, providerQueue, providerWaitQueue } from './contract/messages.ts';
import { stepTraits, type StepName, type Steps } from './contract/stepTable.ts';

export type StepInput<N extends StepName> = Parameters<Steps[N]>[0];
export type StepResult<N extends StepName> = Awaited<ReturnType<Steps[N]>>;

/** What the time limits of one call depend on. */
export interface StepCall {
  /** Empty for steps on the main queue. */
  provider: string;
  /** Bound of one request to Proxmox. */
  requestBoundMs: number;
  /** How long the step itself may wait; 0 for short steps. */
  waitMs: number;
  /** Plain words for the Temporal UI. */
  summary: string;
}

/**
 * Classified failures go to the workflow at once, which publishes and paces them (design §5). What Temporal
 * repeats by itself is a read that said «not yet», or whose worker went away.
 */
const readRetry: RetryPolicy = {
  initialInterval: readRetryMs.first,
  backoffCoefficient: 2,
  maximumInterval: readRetryMs.max,
  nonRetryableErrorTypes: [...errorClasses],
};
const writeRetry: RetryPolicy = { maximumAttempts: 1 };

function taskQueueOf(name: StepName, provider: string): string {
  const { queue } = stepTraits[name];
  if (queue === 'main') return mainTaskQueue;
  return queue === 'wait' ? providerWaitQueue(provider) : providerQueue(provider);
}

/** Silence after which Temporal gives an attempt up: not before a write that it may just have sent is over (design §3). */
function heartbeatMsOf(name: StepName, boundMs: number): number {
  const { queue, effect } = stepTraits[name];
  if (queue === 'wait') return waitHeartbeatMs;
  return (effect === 'write' ? temporalSilenceMs : 0) + boundMs + heartbeatSlackMs;
}

/** Options of one call: its time limit is wait + requests × request bound + slack. */
export function stepOptions(name: StepName, call: StepCall): ActivityOptions {
  const { queue, effect, requests } = stepTraits[name];
  const onMain = queue === 'main';
  const boundMs = onMain ? kubernetesBoundMs : call.requestBoundMs;
  return {
    taskQueue: taskQueueOf(name, call.provider),
    startToCloseTimeout: call.waitMs + requests * boundMs + slackMs,
    heartbeatTimeout: heartbeatMsOf(name, boundMs),
    ...(onMain ? {} : { scheduleToStartTimeout: scheduleToStartMs }),
    retry: effect === 'read' ? readRetry : writeRetry,
    // A wait changes nothing, so nobody needs to see its end; a write runs in a scope of its own.
    cancellationType: 'TRY_CANCEL',
    summary: call.summary,
  };
}

/** How long a step may wait by itself. `awaitTask` depends on the kind of its task. */
export function waitMsOf(name: StepName): number {
  return name === 'awaitRunning' ? waitBudgets.running : 0;
}

/** `Steps` with input and result tied to one name, as TypeScript needs it for a name that is a variable. */
type AllSteps = { [N in StepName]: (input: StepInput<N>) => Promise<StepResult<N>> };

/** Schedules one step. Throws Temporal's ActivityFailure; read it with failures.ts. */
export function runStep<N extends StepName>(
  name: N,
  input: StepInput<N>,
  call: StepCall,
): Promise<StepResult<N>> {
  const steps: AllSteps = proxyActivities<Steps>(stepOptions(name, call));
  return steps[name](input);
}

/** The long watcher of `provider`: as `runProbes`, on the queue of those who serve the provider. */
export function runWatch(provider: string): Promise<void> {
  const { watchVms } = proxyActivities<Pick<Steps, 'watchVms'>>({
    taskQueue: providerWaitQueue(provider),
    startToCloseTimeout: '30 days',
    scheduleToStartTimeout: scheduleToStartMs,
    heartbeatTimeout: watchHeartbeatMs,
    retry: readRetry,
    cancellationType: 'TRY_CANCEL',
    summary: `watch the VMs of provider ${provider}`,
  });
  return watchVms({ provider });
}

/** The long watcher of `probes`: no time limit worth the name, a heartbeat tells whether it lives. */
export function runProbes(): Promise<void> {
  const { probeProxies } = proxyActivities<Pick<Steps, 'probeProxies'>>({
    taskQueue: mainTaskQueue,
    startToCloseTimeout: '30 days',
    heartbeatTimeout: probesHeartbeatMs,
    retry: readRetry,
    cancellationType: 'TRY_CANCEL',
    summary: 'send requests through every Proxy',
  });
  return probeProxies();
}
