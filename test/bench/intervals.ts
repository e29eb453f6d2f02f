/** Stretches of time and what is left of them; all in epoch milliseconds. Pure. */

export interface Interval {
  fromMs: number;
  toMs: number;
}

function lengthMs(intervals: readonly Interval[]): number {
  return intervals.reduce((sum, { fromMs, toMs }) => sum + (toMs - fromMs), 0);
}

/** What of `intervals` lies outside `away`. */
export function without(intervals: readonly Interval[], away: Interval): Interval[] {
  return intervals.flatMap(({ fromMs, toMs }) =>
    [
      { fromMs, toMs: Math.min(toMs, away.fromMs) },
      { fromMs: Math.max(fromMs, away.toMs), toMs },
    ].filter((part) => part.toMs > part.fromMs),
  );
}

/** A named stretch that explains where time went. */
export interface Share {
  label: string;
  interval: Interval;
}

/**
 * Divides `window` among `shares`, every millisecond once: the first share that covers it has it. Returns milliseconds
 * by label in the order of the shares, what none covers under `rest`. The sum is the length of the window.
 */
export function divide(
  window: Interval,
  shares: readonly Share[],
  rest: string,
): Map<string, number> {
  const had = new Map<string, number>();
  let left: Interval[] = [window];
  for (const { label, interval } of shares) {
    const after = without(left, interval);
    had.set(label, (had.get(label) ?? 0) + lengthMs(left) - lengthMs(after));
    left = after;
  }
  had.set(rest, (had.get(rest) ?? 0) + lengthMs(left));
  return had;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const low = sorted[Math.ceil(middle) - 1] ?? 0;
  const high = sorted[Math.floor(middle)] ?? 0;
  return (low + high) / 2;
}
