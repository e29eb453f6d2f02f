/** The times of a worker. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../activities/deps.ts';

/** The wall's: what steps compare with times of Temporal and of Proxmox. */
export const wallClock: Clock = {
  now: () => Date.now(),
  sleep: async (ms, signal) => {
    await delay(ms, undefined, { signal });
  },
};

/**
 * Goes on evenly whatever is done to the wall clock: for what only waits and paces. By a clock that is set back an hour,
 * nothing would be probed or watched for that hour, and nobody told. Its epoch is the wall clock's at the start.
 */
export const steadyClock: Clock = {
  ...wallClock,
  now: () => performance.timeOrigin + performance.now(),
};
