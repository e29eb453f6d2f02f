/** The only door from a step's errors to Temporal's failures: class → type, facts as details. */
import { CancelledFailure } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import type { FailureFacts } from '../workflows/contract/errors.ts';
import { NotYet, ProviderError } from './providerError.ts';

/**
 * What Temporal records of a step's error: message and plain facts, never a cause or stack of a library, which
 * might carry what it was given (design §11). Anything unclassified is Transient, the specification's default.
 */
export function toFailure(error: unknown, cancelled: boolean): Error {
  if (error instanceof CancelledFailure) return error;
  if (cancelled) return new CancelledFailure('the step was cancelled');
  if (error instanceof NotYet) {
    return withoutStack(
      ApplicationFailure.create({
        message: error.message,
        type: 'NotYet',
        category: ApplicationFailureCategory.BENIGN,
        nextRetryDelay: error.retryAfterMs,
      }),
    );
  }
  if (error instanceof ProviderError) return failure(error.errorClass, error.message, error.facts);
  const facts: FailureFacts = { reason: 'Internal', scope: 'proxy' };
  return failure('Transient', `internal error: ${nameOf(error)}`, facts);
}

/** A wait that ends because its worker does: Temporal hands it to another one at once (`WorkerShutdown`). */
export function handOver(): ApplicationFailure {
  return ApplicationFailure.create({
    message: 'the worker shuts down; another one goes on with the wait',
    type: 'WorkerShutdown',
    category: ApplicationFailureCategory.BENIGN,
  });
}

function failure(type: string, message: string, facts: FailureFacts): ApplicationFailure {
  const made = ApplicationFailure.create({
    message,
    type,
    nonRetryable: true,
    details: [facts],
    // The step has its own log line; Temporal's warning beside it would say the same twice.
    category: ApplicationFailureCategory.BENIGN,
  });
  return withoutStack(made);
}

/** The stack names files of the operator only; whoever reads «last failure» of a pending step looks for the sentence. */
function withoutStack(made: ApplicationFailure): ApplicationFailure {
  made.stack = '';
  return made;
}

/** An unforeseen error's text might quote its input, so history gets its kind only; the log has the rest. */
function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}
