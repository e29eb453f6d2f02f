/** SIGTERM and SIGINT as an AbortSignal. */
import type { Logger } from 'pino';

/** Aborts at the first SIGTERM or SIGINT; a second one ends the process at once. */
export function shutdownSignal(log: Logger): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(1);
      log.info({ signal: name }, 'shutting down');
      controller.abort(new Error(`${name} received`));
    });
  }
  return controller.signal;
}

/** Resolves when the signal has aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
