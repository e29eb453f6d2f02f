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

export interface Cadence {
  intervalMs: number;
  /** The address's own moment in every interval, 0 ≤ x < 1. */
  share: number;
}

/**
 * When to probe next (epoch ms). A healthy proxy is asked once an interval, in the slot of its own: so a thousand that came
 * up in the same second, or fell and rose together, are spread over the interval again with their next probe. One that is
 * not healthy is asked after 2, 4, 8 s … up to the interval, so that Ready does not wait for the clock; `random`
 * (0 ≤ x < 1) moves that by a tenth either way.
 */
export function nextProbeAtMs(
  verdict: Verdict,
  cadence: Cadence,
  times: { startedMs: number; nowMs: number },
  random: number,
): number {
  const { startedMs, nowMs } = times;
  const { intervalMs } = cadence;
  // Half an interval: after a probe in its slot the next one is an interval away, after one out of turn a half to one and a half.
  const steadyMs = Math.max(nowMs, slotFrom(startedMs + intervalMs / 2, cadence));
  const eagerMs = firstPauseMs * 2 ** Math.min(verdict.failures, 20);
  if (verdict.healthy === true || eagerMs >= intervalMs) return steadyMs;
  return Math.min(steadyMs, nowMs + eagerMs * (0.9 + random / 5));
}

/** The first moment of an address at or after `ms`. */
export function slotFrom(ms: number, { intervalMs, share }: Cadence): number {
  const offsetMs = share * intervalMs;
  return Math.ceil((ms - offsetMs) / intervalMs) * intervalMs + offsetMs;
}
