/** Which runs to make sure of at a full list, beyond what `decide` found. Pure. */

/** Every Proxy's run is made sure of once in this time, whatever else is known. */
export const resyncPeriodMs = 3_600_000;

/**
 * UIDs whose run is to be started if it does not exist: those that Temporal does not list as running (`running` is null
 * when it could not be asked), and those whose turn fell between the last full list and now. Turns are spread over an
 * hour by UID, so two thousand Proxies ask for one start every two seconds and not for all at once.
 */
export function dueForEnsure(
  uids: readonly string[],
  running: ReadonlySet<string> | null,
  sinceMs: number,
  nowMs: number,
): string[] {
  return uids.filter((uid) => {
    if (running !== null && !running.has(uid)) return true;
    return isTurn(uid, sinceMs, nowMs);
  });
}

/** Whether the UID's moment of the hour lies in (sinceMs, nowMs]. */
function isTurn(uid: string, sinceMs: number, nowMs: number): boolean {
  if (nowMs - sinceMs >= resyncPeriodMs) return true;
  const offsetMs = (fraction(uid) * resyncPeriodMs) | 0;
  const turnMs = Math.floor((nowMs - offsetMs) / resyncPeriodMs) * resyncPeriodMs + offsetMs;
  return turnMs > sinceMs;
}

/** 0 ≤ x < 1, evenly spread: the first 8 hex digits of a (random) UID. */
function fraction(uid: string): number {
  const digits = Number.parseInt(uid.slice(0, 8), 16);
  return Number.isNaN(digits) ? 0 : digits / 2 ** 32;
}
