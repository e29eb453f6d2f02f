/** Turns a step's failure into the trouble that status, UI and pacing speak of. Pure. */
import {
  askedRetryMaxMs,
  providerRetryMs,
  quickTries,
  retryDelayMs,
  waitBudgets,
} from './contract/budgets.ts';
import { isUnserved, type FailureFacts, type Reason } from './contract/errors.ts';
import type { StepName } from './contract/stepTable.ts';
import type { StepFailure } from './failures.ts';
import type { LockWait, Trouble } from './state.ts';

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
  const locked = lockWait(before?.locked ?? null, facts, nowMs);
  // Shown until the lock is gone, not only in the attempt that finds the budget used up.
  const overdue = locked !== null && nowMs - locked.sinceMs >= waitBudgets.lock;
  const reason = overdue ? 'BudgetExceeded' : facts.reason;
  const known = same && isSameCause(before.reason, reason) ? before.sinceMs : nowMs;
  return {
    step,
    subject,
    errorClass: failure.errorClass,
    scope: facts.scope,
    reason,
    message: failure.message,
    remedy: (overdue ? lockRemedy(locked, failure) : null) ?? remedyOf(failure),
    blockedBy: blockedBy(facts),
    sinceMs: locked?.sinceMs ?? known,
    locked,
    attempt,
    nextAtMs: nextAttempt(failure, attempt, nowMs, removing),
  };
}

/** A provider that nobody serves is told by a config without it, or by a step that nobody took: the wait is one. */
function isSameCause(before: Reason, now: Reason): boolean {
  return before === now || (isUnserved(before) && isUnserved(now));
}

/** The wait for a VM's lock has one beginning, whichever step of the line meets it (specification, Timeouts). */
function lockWait(before: LockWait | null, facts: FailureFacts, nowMs: number): LockWait | null {
  const { reason, lock, vmid } = facts;
  if (lock === undefined || vmid === undefined) return null;
  if (reason !== 'WaitingForLock' && reason !== 'BudgetExceeded') return null;
  const known = before?.vmid === vmid && before.lock === lock ? before : null;
  const sinceMs = known?.sinceMs ?? nowMs;
  // The step has told and counted that the budget ran out: what follows is a new wait.
  const anew = reason === 'BudgetExceeded' || known === null;
  return { vmid, lock, sinceMs, budgetFromMs: anew ? nowMs : known.budgetFromMs };
}

/** `null`: the step has told it itself. */
function lockRemedy({ vmid }: LockWait, { facts, message }: StepFailure): string | null {
  const command = `qm unlock ${vmid}`;
  if (message.includes(command)) return null;
  const minutes = waitBudgets.lock / 60_000;
  const where = facts.node === undefined ? '' : ` on ${facts.node}`;
  return `locked for over ${minutes} min; when no task of VM ${vmid} runs any more${where}: ${command}`;
}

/** In the way until news come: no further attempt mends it by itself. Its time stays while the reason does. */
export function latchedTrouble(
  before: Trouble | null,
  reason: Reason,
  message: string,
  remedy: string | null,
  nowMs: number,
): Trouble {
  return {
    step: 'allocateVmid',
    subject: 'repair',
    errorClass: 'Transient',
    scope: 'proxy',
    reason,
    message,
    remedy,
    blockedBy: reason,
    sinceMs: before?.reason === reason ? before.sinceMs : nowMs,
    locked: null,
    attempt: 1,
    nextAtMs: null,
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
