/** Reads the failure of a step: the one place where workflow code looks inside Temporal's failure chain. */
import {
  ActivityFailure,
  ApplicationFailure,
  TimeoutFailure,
  isCancellation,
} from '@temporalio/workflow';
import { errorClasses, type ErrorClass, type FailureFacts } from './contract/errors.ts';

export interface StepFailure {
  /** `interrupted`: the worker went away or the attempt was lost; nobody failed (design §5). */
  kind: 'failed' | 'interrupted';
  errorClass: ErrorClass;
  message: string;
  facts: FailureFacts;
}

/**
 * What a thrown step error means. A cancellation, and anything that is not a step's failure, is thrown on:
 * a fault of the workflow itself must stop the task, not be taken for a failure of Proxmox.
 */
export function readFailure(error: unknown): StepFailure {
  if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
  const cause = error.cause;
  if (cause instanceof TimeoutFailure) return readTimeout(cause);
  if (!(cause instanceof ApplicationFailure)) throw error;
  if (cause.type === 'WorkerShutdown') return interrupted("cut off by a worker's shutdown");
  const facts = isFacts(cause.details?.[0]) ? cause.details[0] : undefined;
  return {
    kind: 'failed',
    errorClass: errorClasses.find((name) => name === cause.type) ?? 'Transient',
    message: cause.message,
    facts: facts ?? { reason: 'Internal', scope: 'proxy' },
  };
}

function readTimeout(timeout: TimeoutFailure): StepFailure {
  if (timeout.timeoutType !== 'SCHEDULE_TO_START') {
    return interrupted('lost: no sign of life from its worker');
  }
  return {
    kind: 'failed',
    errorClass: 'Transient',
    message: 'no worker took this step within a minute',
    facts: {
      reason: 'ProviderNotServed',
      scope: 'provider',
      remedy:
        'start a worker whose providers config has this provider, or one more when those that run are busy',
    },
  };
}

function interrupted(message: string): StepFailure {
  return {
    kind: 'interrupted',
    errorClass: 'Transient',
    message,
    facts: { reason: 'Internal', scope: 'proxy', outcomeUnknown: true, goBack: true },
  };
}

function isFacts(value: unknown): value is FailureFacts {
  return typeof value === 'object' && value !== null && 'reason' in value && 'scope' in value;
}
