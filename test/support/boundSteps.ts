/** Steps as a worker runs them: bound to a Temporal attempt, with their span, line and measurement. */
import { MockActivityEnvironment } from '@temporalio/testing';
import type { Logger } from 'pino';
import { createProviderSteps, type ProviderSteps } from '../../activities/index.ts';
import type { StepMeasurement } from '../../activities/observe.ts';
import type { StepRig } from './stepHarness.ts';

type Name = keyof ProviderSteps;
type Input<N extends Name> = Parameters<ProviderSteps[N]>[0];
type Results = { [N in Name]: Awaited<ReturnType<ProviderSteps[N]>> };
type Bound = { [N in Name]: (input: Input<N>) => Promise<Results[N]> };

export interface BoundSteps {
  /** One attempt; rejects with the failure that Temporal would record. `extra` is what the workflow adds to any input. */
  run: <N extends Name>(name: N, input: Input<N>, extra?: object) => Promise<Results[N]>;
  measurements: StepMeasurement[];
}

/** `log` instead of the rig's: the requests of the steps go on writing to the rig's. */
export function boundSteps(rig: StepRig, log: Logger = rig.deps.log): BoundSteps {
  const measurements: StepMeasurement[] = [];
  const steps: Bound = createProviderSteps(
    { ...rig.deps, log },
    {
      observer: { onStep: (measurement) => void measurements.push(measurement) },
      shutdown: new AbortController().signal,
    },
  );
  return {
    measurements,
    run: <N extends Name>(name: N, input: Input<N>, extra: object = {}) => {
      const nowMs = Date.now();
      const times = { scheduledTimestampMs: nowMs, currentAttemptScheduledTimestampMs: nowMs };
      const workflowExecution = { workflowId: `proxy-${rig.ref.uid}`, runId: 'a run' };
      const attempt = new MockActivityEnvironment({
        ...times,
        workflowExecution,
        startToCloseTimeoutMs: 10 * 60_000,
      });
      const call = (): Promise<Results[N]> => steps[name]({ ...input, ...extra });
      return attempt.run<[], Results[N], typeof call>(call);
    },
  };
}
