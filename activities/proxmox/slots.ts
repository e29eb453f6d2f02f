/** Connections of one provider as a counted resource: a few for everything, fewer of them for writes. */

interface Waiter {
  write: boolean;
  start(): void;
}

/** First come, first served, except that a write waiting for its share does not hold up reads behind it. */
export class Slots {
  readonly #total: number;
  readonly #writes: number;
  readonly #waiting: Waiter[] = [];
  #busy = 0;
  #busyWrites = 0;

  constructor(limits: { total: number; writes: number }) {
    this.#total = limits.total;
    this.#writes = limits.writes;
  }

  /**
   * Resolves with the function that gives the slot back (calling it twice is harmless).
   * Rejects with the signal's reason when that aborts first.
   */
  async take(write: boolean, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (!this.#free(write)) await this.#wait(write, signal);
    else this.#count(write, 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#count(write, -1);
      this.#startNext();
    };
  }

  #free(write: boolean): boolean {
    return this.#busy < this.#total && (!write || this.#busyWrites < this.#writes);
  }

  #count(write: boolean, by: 1 | -1): void {
    this.#busy += by;
    if (write) this.#busyWrites += by;
  }

  #wait(write: boolean, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = (): void => {
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
      reject(signal.reason);
    };
    const waiter: Waiter = {
      write,
      start: () => {
        signal.removeEventListener('abort', onAbort);
        // Counted here, not after the await: otherwise two waiters could be given the same slot.
        this.#count(write, 1);
        resolve();
      },
    };
    this.#waiting.push(waiter);
    signal.addEventListener('abort', onAbort, { once: true });
    return promise;
  }

  #startNext(): void {
    const index = this.#waiting.findIndex((waiter) => this.#free(waiter.write));
    if (index < 0) return;
    const [next] = this.#waiting.splice(index, 1);
    next?.start();
  }
}
