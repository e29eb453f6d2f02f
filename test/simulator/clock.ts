/**
 * Time as the simulator counts it. Durations of the imitated cluster (a clone, a boot, the delay of a 401) are
 * given in cluster seconds and take `scale` real seconds each; timestamps are real, so that a client which compares
 * them with its own clock is not led astray. What depends on the client's own pace (5 s of idle connection) is not
 * scaled and does not go through here.
 */
export interface Clock {
  /** Real time, ms since the epoch. */
  now(): number;
  /** Resolves after `seconds` cluster seconds; rejects with the signal's reason when aborted. */
  sleep(seconds: number, signal?: AbortSignal): Promise<void>;
  /** Cluster seconds since a real timestamp. */
  since(realMs: number): number;
  scale: number;
}

/** A clock over the real timers; 0.01 is a hundred times faster than a real cluster. */
export function scaledClock(scale: number): Clock {
  const clock: Clock = {
    scale,
    now: () => Date.now(),
    since: (realMs) => (Date.now() - realMs) / 1000 / Math.max(clock.scale, 1e-6),
    sleep: (seconds, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(asError(signal.reason));
          return;
        }
        const onAbort = (): void => {
          clearTimeout(timer);
          reject(asError(signal?.reason));
        };
        const timer = setTimeout(
          () => {
            signal?.removeEventListener('abort', onAbort);
            resolve();
          },
          seconds * 1000 * clock.scale,
        );
        // What the cluster still has to do keeps no process alive.
        timer.unref();
        signal?.addEventListener('abort', onAbort, { once: true });
      }),
  };
  return clock;
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
