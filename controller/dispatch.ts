/** Carries decisions to Temporal: some at a time, one per Proxy, again until it works. */
import type { Logger } from 'pino';
import type { DesiredChanged } from '../workflows/contract/messages.ts';
import type { Desk, ProxyIdentity } from './desk.ts';

export type Job = { proxy: ProxyIdentity } & (
  | { kind: 'ensure' }
  | { kind: 'news'; news: DesiredChanged }
  /** The object is gone. */
  | { kind: 'gone'; news: DesiredChanged }
);

export interface DispatcherOptions {
  desk: Desk;
  log: Logger;
  /** Calls under way at once. */
  concurrency?: number;
  /** Pause after a failure, per Proxy; doubled up to the maximum, plus up to a quarter at random. */
  retryFirstMs?: number;
  retryMaxMs?: number;
}

interface Waiting {
  job: Job;
  failures: number;
  /** By `steadyMs`. */
  notBeforeMs: number;
}

/** A queue with one place per UID: a newer job takes an older one's place, so an outage of Temporal costs no memory. */
export class Dispatcher {
  readonly #desk: Desk;
  readonly #log: Logger;
  readonly #concurrency: number;
  readonly #retryFirstMs: number;
  readonly #retryMaxMs: number;
  readonly #waiting = new Map<string, Waiting>();
  readonly #underWay = new Map<string, Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #lastProblem = '';

  constructor(options: DispatcherOptions) {
    this.#desk = options.desk;
    this.#log = options.log;
    this.#concurrency = options.concurrency ?? 8;
    this.#retryFirstMs = options.retryFirstMs ?? 1_000;
    this.#retryMaxMs = options.retryMaxMs ?? 30_000;
  }

  submit(job: Job): void {
    const { uid } = job.proxy.ref;
    const before = this.#waiting.get(uid);
    this.#waiting.set(uid, {
      job: before === undefined ? job : newerOf(before.job, job),
      failures: before?.failures ?? 0,
      notBeforeMs: before?.notBeforeMs ?? 0,
    });
    this.#pump();
  }

  /** Jobs that Temporal has not taken yet. */
  pending(): number {
    return this.#waiting.size + this.#underWay.size;
  }

  /** Starts no further call and waits for those under way. What waits is found again from status after a restart. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await Promise.all(this.#underWay.values());
  }

  #pump(): void {
    clearTimeout(this.#timer);
    if (this.#stopped) return;
    const now = steadyMs();
    let nextMs = Infinity;
    for (const [uid, waiting] of this.#waiting) {
      if (this.#underWay.size >= this.#concurrency) return;
      // A call for this Proxy is under way; its end pumps again, so order is kept.
      if (this.#underWay.has(uid)) continue;
      if (waiting.notBeforeMs > now) {
        nextMs = Math.min(nextMs, waiting.notBeforeMs);
        continue;
      }
      this.#waiting.delete(uid);
      this.#underWay.set(uid, this.#carry(uid, waiting));
    }
    if (nextMs < Infinity) this.#timer = setTimeout(() => this.#pump(), nextMs - now);
  }

  async #carry(uid: string, waiting: Waiting): Promise<void> {
    try {
      await this.#send(waiting.job);
      if (this.#lastProblem !== '') this.#log.info({}, 'temporal takes requests again');
      this.#lastProblem = '';
    } catch (error) {
      this.#failed(uid, waiting, error);
    }
    this.#underWay.delete(uid);
    this.#pump();
  }

  async #send(job: Job): Promise<void> {
    const { ref } = job.proxy;
    const fields = { proxy: `${ref.namespace}/${ref.name}`, uid: ref.uid };
    switch (job.kind) {
      case 'ensure':
        await this.#desk.ensure(job.proxy);
        this.#log.debug(fields, 'proxy workflow ensured');
        return;
      case 'news':
        await this.#desk.tell(job.proxy, job.news);
        this.#log.info({ ...fields, ...job.news }, 'proxy workflow told');
        return;
      case 'gone':
        await this.#desk.tellGone(ref, job.news);
        this.#log.info(fields, 'proxy object gone, workflow told');
        return;
    }
  }

  #failed(uid: string, { job, failures }: Waiting, error: unknown): void {
    const text = error instanceof Error ? error.message : String(error);
    if (text !== this.#lastProblem) {
      this.#lastProblem = text;
      this.#log.warn(
        { err: error, pending: this.pending() },
        'temporal took no request, trying again',
      );
    }
    const pauseMs = Math.min(this.#retryMaxMs, this.#retryFirstMs * 2 ** Math.min(failures, 20));
    const newer = this.#waiting.get(uid)?.job;
    this.#waiting.set(uid, {
      job: newer === undefined ? job : newerOf(job, newer),
      failures: failures + 1,
      notBeforeMs: steadyMs() + pauseMs * (1 + Math.random() / 4),
    });
  }
}

/** Goes on evenly: with a wall clock that is set back an hour, nothing would be tried again for that hour. */
function steadyMs(): number {
  return performance.now();
}

/** What is left to say when both were to be said: «gone» ends everything, news includes the start. */
function newerOf(before: Job, after: Job): Job {
  if (before.kind === 'gone' || after.kind === 'gone')
    return before.kind === 'gone' ? before : after;
  return after.kind === 'ensure' && before.kind === 'news' ? before : after;
}
