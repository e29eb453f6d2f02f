import type { Clock } from '../clock.ts';

/** A clock that stands still until it is told to go on: a replay takes the captures' own times, not ours. */
export interface VirtualClock extends Clock {
  /** Fires every timer up to `realMs` in order, letting the work that each one starts settle. */
  advanceTo(realMs: number): Promise<void>;
  /** Goes on to the next timer; `false` when none is waiting. */
  step(): Promise<boolean>;
}

interface Timer {
  at: number;
  order: number;
  fire: () => void;
}

export function virtualClock(startMs: number): VirtualClock {
  let now = startMs;
  let order = 0;
  let timers: Timer[] = [];

  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 4; turn += 1) {
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
  };
  const next = (): Timer | undefined =>
    timers.reduce<Timer | undefined>(
      (best, timer) =>
        best === undefined ||
        timer.at < best.at ||
        (timer.at === best.at && timer.order < best.order)
          ? timer
          : best,
      undefined,
    );
  const fire = async (timer: Timer): Promise<void> => {
    timers = timers.filter((entry) => entry !== timer);
    now = Math.max(now, timer.at);
    timer.fire();
    await settle();
  };

  return {
    scale: 1,
    now: () => now,
    since: (realMs) => (now - realMs) / 1000,
    sleep: (seconds, signal) =>
      new Promise((resolve, reject) => {
        const fail = (): void => {
          timers = timers.filter((entry) => entry !== timer);
          const reason: unknown = signal?.reason;
          reject(reason instanceof Error ? reason : new Error('aborted'));
        };
        order += 1;
        const timer: Timer = {
          at: now + seconds * 1000,
          order,
          fire: () => {
            signal?.removeEventListener('abort', fail);
            resolve();
          },
        };
        if (signal?.aborted === true) {
          fail();
          return;
        }
        signal?.addEventListener('abort', fail, { once: true });
        timers.push(timer);
      }),
    advanceTo: async (realMs) => {
      await settle();
      for (;;) {
        const timer = next();
        if (timer === undefined || timer.at > realMs) break;
        await fire(timer);
      }
      now = Math.max(now, realMs);
      await settle();
    },
    step: async () => {
      const timer = next();
      if (timer === undefined) return false;
      await fire(timer);
      return true;
    },
  };
}
