/** Turns a step's failure into the trouble that status, UI and pacing speak of. Pure. */
import { askedRetryMaxMs, providerRetryMs, quickTries, retryDelayMs } from './contract/budgets.ts';
import type { FailureFacts } from './contract/errors.ts';
import type { StepName } from './contract/steps.ts';
import type { StepFailure } from './failures.ts';
import type { Trouble } from './state.ts';

/**
 * The trouble after one more failure of `step`. Transient: 1, 2, 4 s … 5 min, or what the failure asks for.
 * Permanent: a provider's is tried again every 10 minutes, a Proxy's not at all, a removal's slowly (design §5).
 */
export function nextTrouble(
  before: Trouble | null,
  step: StepName,
  failure: StepFailure,
  nowMs: number,
  removing: boolean,
  subject: string = step,
): Trouble {
  const same = before?.subject === subject;
  const attempt = same ? before.attempt + 1 : 1;
  const { facts } = failure;
  return {
    step,
    subject,
    errorClass: failure.errorClass,
    scope: facts.scope,
    reason: facts.reason,
    message: failure.message,
    remedy: remedyOf(failure),
    blockedBy: blockedBy(facts),
    sinceMs: same && before.reason === facts.reason ? before.sinceMs : nowMs,
    attempt,
    nextAtMs: nextAttempt(failure, attempt, nowMs, removing),
  };
}

/** Most messages end with their remedy; it is not to be read twice. */
function remedyOf({ message, facts }: StepFailure): string | null {
  return facts.remedy === undefined || message.includes(facts.remedy) ? null : facts.remedy;
}

function nextAttempt(
  failure: StepFailure,
  attempt: number,
  nowMs: number,
  removing: boolean,
): number | null {
  if (failure.kind === 'interrupted') return attempt === 1 ? nowMs : nowMs + retryDelayMs(attempt);
  if (failure.errorClass === 'Permanent') {
    if (failure.facts.scope === 'provider') return nowMs + providerRetryMs;
    return removing ? nowMs + retryDelayMs(attempt + 6) : null;
  }
  return nowMs + delayMs(failure.facts.retryAfterMs, attempt);
}

/** A delay that the failure asks for holds for the first tries; what goes on for long is asked about less often. */
function delayMs(askedMs: number | undefined, attempt: number): number {
  if (askedMs === undefined) return retryDelayMs(attempt);
  const patientMs = Math.min(askedRetryMaxMs, retryDelayMs(Math.max(1, attempt - quickTries)));
  return attempt <= quickTries ? askedMs : Math.max(askedMs, patientMs);
}

/** Value of the search attribute ProxyBlockedBy (design §6). */
function blockedBy(facts: FailureFacts): string | null {
  if (facts.lock) return `lock:${facts.lock}`;
  switch (facts.reason) {
    case 'Forbidden':
    case 'Unauthorized':
      return 'permission';
    case 'AgentSilent':
      return 'agent';
    case 'WaitingForSlot':
      return 'slot';
    case 'DeletionBlocked':
      return 'protection';
    case 'Unreachable':
      return facts.node ? `node:${facts.node}` : 'provider';
    case 'CredentialsUnavailable':
    case 'CertificateInvalid':
    case 'TokenMalformed':
      return 'credentials';
    default:
      return facts.reason;
  }
}
