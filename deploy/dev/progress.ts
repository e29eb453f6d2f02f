import type { Log } from './program.ts';

const intervalMs = 10_000;

/**
 * Says that something long goes on: a line at once and one every 10 s with the seconds gone.
 * `detail` is asked for each later line, and may be empty.
 */
export async function withProgress<T>(
  log: Log,
  what: string,
  work: () => Promise<T>,
  detail: () => string = () => '',
): Promise<T> {
  const startedAt = Date.now();
  log(`${what} …`);
  const timer = setInterval(() => {
    const seconds = Math.round((Date.now() - startedAt) / 1_000);
    const more = detail();
    log(`${what} … ${seconds} s${more === '' ? '' : `, ${more}`}`);
  }, intervalMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
