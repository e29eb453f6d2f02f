/** Keeps every address of every Proxy probed and tells workflows of transitions. One per activity attempt. */
import type { Logger } from 'pino';
import type { Proxy } from '../../api/proxy.ts';
import type { HealthSignal } from '../../workflows/contract/messages.ts';
import { isMissing } from './credentials.ts';
import type { ProbeCredentialsCache } from './credentials.ts';
import type { ProbeOutcome, ProbeRequest } from './probe.ts';
import { ProbeSchedule } from './schedule.ts';
import type { LatestProbe, TargetDown } from './targetDown.ts';
import { targetsOf } from './targets.ts';
import type { ProbeTarget } from './targets.ts';
import { nextProbeInMs, nextVerdict, startingVerdict } from './verdict.ts';
import type { Verdict } from './verdict.ts';

export interface ProberOptions {
  /** Orders the signals of successive attempts: later runs sort after earlier ones. */
  run: string;
  probe: (request: ProbeRequest) => Promise<ProbeOutcome>;
  credentials: ProbeCredentialsCache;
  targetDown: TargetDown;
  /** Resolves also when there is no such run. */
  signal: (workflowId: string, health: HealthSignal) => Promise<void>;
  defaultUrl: string;
  log: Logger;
  now: () => number;
  random: () => number;
}

interface Watched {
  target: ProbeTarget;
  verdict: Verdict;
  latest: LatestProbe | null;
  toldMs: number;
  tellings: number;
}

/** Probes at once. */
export const probesAtOnce = 64;
/** A transition the status does not show is told again after this long, then ever more rarely. */
const retellFirstMs = 30_000;
const retellMaxMs = 600_000;

export class Prober {
  readonly #options: ProberOptions;
  readonly #schedule = new ProbeSchedule();
  readonly #watched = new Map<string, Watched>();
  readonly #underWay = new Set<Promise<void>>();
  #first = true;
  #sequence = 0;

  constructor(options: ProberOptions) {
    this.#options = options;
  }

  /** Takes in what the cache holds now. The first time, verdicts start from the statuses: a restart causes no storm. */
  update(proxies: readonly Proxy[]): void {
    const targets = new Map<string, ProbeTarget>();
    for (const proxy of proxies) {
      for (const target of targetsOf(proxy, this.#options.defaultUrl))
        targets.set(target.key, target);
    }
    const added = this.#schedule.keep(targets.keys(), this.#options.now());
    for (const key of this.#watched.keys()) if (!targets.has(key)) this.#watched.delete(key);
    for (const key of added) {
      const target = targets.get(key);
      if (target === undefined) continue;
      const verdict = startingVerdict(this.#first ? target.published : null);
      this.#watched.set(key, { target, verdict, latest: null, toldMs: 0, tellings: 0 });
    }
    for (const [key, watched] of this.#watched) watched.target = targets.get(key) ?? watched.target;
    this.#first = false;
  }

  /** Starts the probes that are due; returns how long there is nothing to do (ms). */
  start(): number {
    const free = probesAtOnce - this.#underWay.size;
    for (const key of this.#schedule.take(this.#options.now(), free)) {
      const run = this.#round(key).finally(() => this.#underWay.delete(run));
      this.#underWay.add(run);
    }
    return Math.max(0, this.#schedule.nextDueMs() - this.#options.now());
  }

  /** Whether a further probe may start. */
  hasRoom(): boolean {
    return this.#underWay.size < probesAtOnce;
  }

  /** Waits for the probes under way. */
  async settle(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  async #round(key: string): Promise<void> {
    const watched = this.#watched.get(key);
    if (watched === undefined) return;
    const { log, now, random } = this.#options;
    let outcome: ProbeOutcome | null = null;
    try {
      outcome = await this.#probe(watched.target);
      // The address may have gone meanwhile, and with it everybody who wants to know.
      if (outcome !== null && this.#watched.get(key) === watched)
        await this.#judge(watched, outcome);
    } catch (error) {
      log.error({ err: error, ...fieldsOf(watched.target) }, 'probe failed inside the operator');
    }
    const { verdict, target } = watched;
    // Nothing learnt: no reason to be eager.
    const pauseMs =
      outcome === null ? target.intervalMs : nextProbeInMs(verdict, target.intervalMs, random());
    this.#schedule.ended(key, now() + pauseMs);
  }

  /** `null` when nothing can be said: the credentials could not be asked for, or the attempt is over. */
  async #probe(target: ProbeTarget): Promise<ProbeOutcome | null> {
    const { credentials, log, probe } = this.#options;
    const { namespace, authSecret, ip, port, url, timeoutMs, expectedStatuses } = target;
    try {
      const known = authSecret === null ? null : await credentials.read(namespace, authSecret);
      const request = { ip, port, url, timeoutMs, expectedStatuses, credentials: known };
      const outcome = await probe(request);
      if (outcome.reason === 'ProxyAuthenticationRequired' && authSecret !== null) {
        credentials.refused(namespace, authSecret);
      }
      log.trace({ ...fieldsOf(target), ...outcome }, 'proxy probed');
      return outcome;
    } catch (error) {
      if (isMissing(error) && error instanceof Error) {
        return { healthy: false, reason: 'ProbeFailed', message: error.message, pastProxy: false };
      }
      log.debug({ err: error, ...fieldsOf(target) }, 'proxy not probed');
      return null;
    }
  }

  async #judge(watched: Watched, outcome: ProbeOutcome): Promise<void> {
    const { targetDown, log } = this.#options;
    const { target, verdict: before } = watched;
    watched.latest = { uid: target.uid, url: target.url, ...outcome };
    if (outcome.healthy) targetDown.answered(target.url);
    const verdict = nextVerdict(before, outcome, target.thresholds);
    const turnedBad = verdict.healthy === false && before.healthy !== false;
    if (turnedBad && outcome.pastProxy && (await targetDown.spares(target.url, this.#latest()))) {
      watched.verdict = { ...verdict, healthy: before.healthy };
      log.warn({ ...fieldsOf(target), url: target.url }, 'probe target down, nobody marked down');
      return;
    }
    watched.verdict = verdict;
    if (verdict.healthy === null) return;
    if (verdict.healthy !== before.healthy) {
      watched.tellings = 0;
      log.info({ ...fieldsOf(target), ...outcome }, 'proxy health changed');
      // A verdict is told again by a probe that bears it out, not by one that is about to overthrow it.
    } else if (outcome.healthy !== verdict.healthy || !this.#mustRetell(watched)) return;
    await this.#tell(watched, verdict.healthy);
  }

  #latest(): LatestProbe[] {
    return [...this.#watched.values()].flatMap(({ latest }) => (latest === null ? [] : [latest]));
  }

  /** The workflow should have published it by now: the signal was lost, or its run was. */
  #mustRetell({ target, verdict, toldMs, tellings }: Watched): boolean {
    const disagrees =
      target.role === 'serving' ? target.published !== verdict.healthy : verdict.healthy === true;
    if (!disagrees) return false;
    const pauseMs = Math.min(retellMaxMs, retellFirstMs * 2 ** Math.max(0, tellings - 1));
    return this.#options.now() - toldMs >= pauseMs;
  }

  async #tell(watched: Watched, healthy: boolean): Promise<void> {
    const { run, signal, log, now } = this.#options;
    const { target, verdict } = watched;
    watched.toldMs = now();
    watched.tellings++;
    this.#sequence++;
    const { ip, port, workflowId } = target;
    const { reason, message } = verdict;
    try {
      await signal(workflowId, {
        run,
        sequence: this.#sequence,
        ip,
        port,
        healthy,
        reason,
        message,
      });
    } catch (error) {
      log.warn({ err: error, ...fieldsOf(target) }, 'health not told, told again later');
    }
  }
}

function fieldsOf({ namespace, name, ip, port }: ProbeTarget): Record<string, string | number> {
  return { proxy: `${namespace}/${name}`, ip, port };
}
