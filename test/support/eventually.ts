/** Waits for a state instead of a moment: the condition is asked again until it holds, and says why it does not. */
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Repeats `check` until it neither throws nor returns `false`; after `withinMs` its last failure is thrown. A check that
 * costs more than a look into memory is given a longer pause than the default.
 */
export async function eventually(
  check: () => unknown,
  withinMs = 5_000,
  pauseMs = 10,
): Promise<void> {
  const end = Date.now() + withinMs;
  for (;;) {
    try {
      if ((await check()) !== false) return;
      if (Date.now() > end) throw new Error(`not true within ${withinMs} ms: ${check.toString()}`);
    } catch (error) {
      if (Date.now() > end) throw error;
    }
    await delay(pauseMs);
  }
}
