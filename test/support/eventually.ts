/** Waits for a state instead of a moment: the condition is asked again until it holds, and says why it does not. */
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Repeats `check` until it neither throws nor returns `false`; after `withinMs` its last failure is thrown. A check that
 * costs more than a look into memory is given a longer pause than the default. Goes by no clock that a test may set.
 */
export async function eventually(
  check: () => unknown,
  withinMs = 5_000,
  pauseMs = 10,
): Promise<void> {
  const end = performance.now() + withinMs;
  for (;;) {
    try {
      if ((await check()) !== false) return;
      if (performance.now() > end)
        throw new Error(`not true within ${withinMs} ms: ${check.toString()}`);
    } catch (error) {
      if (performance.now() > end) throw error;
    }
    await delay(pauseMs);
  }
}
