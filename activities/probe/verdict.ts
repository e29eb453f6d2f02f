/** From single probes to a verdict: thresholds, transitions, pauses. Pure. */
import type { ProbeReason } from '../../workflows/contract/messages.ts';
import type { ProbeOutcome } from './probe.ts';

export interface Verdict {
  /** `null` until a threshold has been reached for the first time. */
  healthy: boolean | null;
  /** In a row, up to now. */
  failures: number;
  successes: number;
  reason: ProbeReason;
  message: string;
}
export interface Thresholds {
  failure: number;
  success: number;
}

/** Shortest pause after a failure of a proxy that is not healthy: while it boots, seconds count. */
const firstPauseMs = 1_000;

/** A verdict to start from: what is known already (the status, after a restart), or nothing. */
export function startingVerdict(healthy: boolean | null): Verdict {
  return { healthy, failures: 0, successes: 0, reason: 'ProbeSucceeded', message: '' };
}

/** `healthy` changes exactly when a threshold is reached; a change is what gets signalled. */
export function nextVerdict(
  before: Verdict,
  outcome: ProbeOutcome,
  thresholds: Thresholds,
): Verdict {
  const { reason, message } = outcome;
  const failures = outcome.healthy ? 0 : before.failures + 1;
  const successes = outcome.healthy ? before.successes + 1 : 0;
  const counted = { failures, successes, reason, message };
  if (outcome.healthy && successes >= thresholds.success) return { ...counted, healthy: true };
  if (!outcome.healthy && failures >= thresholds.failure) return { ...counted, healthy: false };
  return { ...counted, healthy: before.healthy };
}

/**
 * Time until the next probe. A healthy proxy is asked every interval; one that is not is asked after 2, 4, 8 s … up to the
 * interval, so that Ready does not wait for the clock. `random` (0 ≤ x < 1) moves it by a tenth either way.
 */
export function nextProbeInMs(verdict: Verdict, intervalMs: number, random: number): number {
  const eagerMs = firstPauseMs * 2 ** Math.min(verdict.failures, 20);
  const pauseMs = verdict.healthy === true ? intervalMs : Math.min(intervalMs, eagerMs);
  return pauseMs * (0.9 + random / 5);
}
