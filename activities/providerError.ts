/** The one throwable of the steps. Carries a class from birth; text is matched in proxmox/classify.ts only. */
import type { ErrorClass, FailureFacts } from '../workflows/contract/errors.ts';

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
