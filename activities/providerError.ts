/** The one throwable of the steps. Carries a class from birth; text is matched in proxmox/classify.ts only. */
import type { ErrorClass, FailureFacts, Reason } from '../workflows/contract/errors.ts';

/** A classified failure. `message` is for people and names object, attempt, answer and remedy; never a secret. */
export class ProviderError extends Error {
  readonly errorClass: ErrorClass;
  readonly facts: FailureFacts;

  constructor(errorClass: ErrorClass, message: string, facts: FailureFacts, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ProviderError';
    this.errorClass = errorClass;
    this.facts = facts;
  }
}

/** «Nothing to report yet» of a poll: benign, asked again by Temporal after `retryAfterMs`, never in a status. */
export class NotYet extends Error {
  readonly retryAfterMs: number;

  constructor(message: string, retryAfterMs: number) {
    super(message);
    this.name = 'NotYet';
    this.retryAfterMs = retryAfterMs;
  }
}

type Facts = Omit<FailureFacts, 'reason' | 'scope'> & { scope?: FailureFacts['scope'] };

/** Trying again may help. Scope `proxy` unless told otherwise. */
export function transient(
  reason: Reason,
  message: string,
  facts: Facts = {},
  cause?: unknown,
): ProviderError {
  return new ProviderError('Transient', message, { scope: 'proxy', ...facts, reason }, cause);
}

/** Trying again unchanged cannot help. Scope `proxy` unless told otherwise. */
export function permanent(reason: Reason, message: string, facts: Facts = {}): ProviderError {
  return new ProviderError('Permanent', message, { scope: 'proxy', ...facts, reason });
}

/** The request did not reach its node, or the node did not answer: that says nothing about what is on it. */
export function isOutOfReach(error: unknown): error is ProviderError {
  if (!(error instanceof ProviderError)) return false;
  return error.facts.reason === 'Unreachable' || error.facts.reason === 'Timeout';
}

/** The VM has no config under that node; only a fresh listing tells whether it is gone (pve/README 7). */
export function isNotFound(error: unknown): boolean {
  return error instanceof ProviderError && error.errorClass === 'NotFound';
}
