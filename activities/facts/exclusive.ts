/** Critical sections within one worker: what counts first and acts afterwards must not be interleaved with itself. */

/** Last holder of each section, per worker: the owner is the worker's one `Providers`. */
const sections = new WeakMap<object, Map<string, Promise<void>>>();

/**
 * Runs `work` when no other call with this owner and key runs. First come, first served. Rejects with the
 * signal's reason when that aborts while waiting; `work` is then never started.
 */
export async function exclusively<T>(
  owner: object,
  key: string,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const keys = sections.get(owner) ?? new Map<string, Promise<void>>();
  sections.set(owner, keys);
  const before = keys.get(key) ?? Promise.resolve();
  const { promise: mine, resolve: leave } = Promise.withResolvers<void>();
  const last = before.then(() => mine);
  keys.set(key, last);
  try {
    await abortable(before, signal);
    return await work();
  } finally {
    leave();
    if (keys.get(key) === last) keys.delete(key);
  }
}

function abortable(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  return Promise.race([promise, aborted]).finally(() => {
    signal.removeEventListener('abort', onAbort);
  });
}
