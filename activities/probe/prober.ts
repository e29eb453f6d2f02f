/** Keeps every address of every Proxy probed and tells workflows of transitions. One per activity attempt. */
import type { Logger } from 'pino';
import type { Proxy } from '../../api/proxy.ts';
import type { HealthSignal } from '../../workflows/contract/messages.ts';
import { isMissing } from './credentials.ts';
import type { ProbeCredentialsCache } from './credentials.ts';
import type { ProbeOutcome, ProbeRequest } from './probe.ts';
import { ProbeSchedule } from './schedule.ts';
import type { LatestProbe, TargetDown } from './targetDown.ts';
import { isProbedOtherwise, probedOf } from './probed.ts';
import type { ProbedAddress } from './probed.ts';
import { nextProbeAtMs, nextVerdict, slotFrom, startingVerdict } from './verdict.ts';
import type { Verdict } from './verdict.ts';

export interface ProberOptions {
  /** Orders the signals of successive attempts: later runs sort after earlier ones. */
  run: string;
  /** Never rejects but for the signal, which says that nobody wants to know any more. */
  probe: (request: ProbeRequest, signal: AbortSignal) => Promise<ProbeOutcome>;
  credentials: ProbeCredentialsCache;
  targetDown: TargetDown;
  /** Resolves also when there is no such run. */
  signal: (workflowId: string, health: HealthSignal) => Promise<void>;
  /** A probe has ended: there may be room for another. */
  ended?: () => void;
  defaultUrl: string;
  log: Logger;
  now: () => number;
  random: () => number;
}

interface Watched {
  probed: ProbedAddress;
  verdict: Verdict;
  latest: LatestProbe | null;
  /** When the failures in a row began (epoch ms). */
  failingSinceMs: number;
  toldMs: number;
  tellings: number;
  /** Ends a probe under way when the address leaves. */
  leaving: AbortController;
}

/** Probes at once; each is a socket. */
export const probesAtOnce = 1_024;
/**
 * Places that slow ones may take among them: however many hang, the others are on time. A thousand that fall silent in the
 * same minute, at 10 s each and 30 s apart, need 334.
 */
export const slowProbesAtOnce = 512;
/** A probe is slow when it takes more of its interval than this: all others together never fill the places. */
const slowShare = 1 / 10;
/** Lateness that is worth a line of the log, and the shortest time between two. */
const lateMs = 5_000;
const lateLineMs = 60_000;
/** A transition the status does not show is told again after this long, then ever more rarely. */
const retellFirstMs = 30_000;
const retellMaxMs = 600_000;

/** Told which Proxies there are (`update`) and when to go on (`start`); it has no clock of its own. */
export class Prober {
  readonly #options: ProberOptions;
  readonly #schedule = new ProbeSchedule();
  readonly #watched = new Map<string, Watched>();
  /** Rounds under way, and whether each counts as slow. */
  readonly #underWay = new Map<Promise<void>, boolean>();
  readonly #telling = new Set<Promise<void>>();
  #first = true;
  #sequence = 0;
  #saidLateMs = 0;

  constructor(options: ProberOptions) {
    this.#options = options;
  }

  /** Takes in what the cache holds now. The first time, verdicts start from the statuses: a restart causes no storm. */
  update(proxies: readonly Proxy[]): void {
    const wanted = new Map<string, ProbedAddress>();
    for (const proxy of proxies) {
      for (const probed of probedOf(proxy, this.#options.defaultUrl))
        wanted.set(probed.key, probed);
    }
    const nowMs = this.#options.now();
    const added = this.#schedule.keep(wanted.keys(), nowMs);
    for (const [key, watched] of this.#watched) {
      const probed = wanted.get(key);
      if (probed === undefined) this.#leave(key, watched);
      else this.#change(key, watched, probed);
    }
    for (const key of added) {
      const probed = wanted.get(key);
      if (probed === undefined) continue;
      this.#watched.set(key, this.#startOf(probed));
      // What the status tells need not be found out at once: a restart probes no thousand proxies in one second.
      if (this.#first && probed.published !== null)
        this.#schedule.ended(key, slotFrom(nowMs, probed));
    }
    this.#first = false;
  }

  /** Starts the probes that are due and have room; returns how long until the next turn comes (ms). */
  start(): number {
    const nowMs = this.#options.now();
    const slowOnes = [...this.#underWay.values()].filter(Boolean).length;
    const room = { all: probesAtOnce - this.#underWay.size, slow: slowProbesAtOnce - slowOnes };
    const taken = this.#schedule.take(nowMs, room);
    for (const { key, slow } of taken) {
      const round = this.#round(key).finally(() => {
        this.#underWay.delete(round);
        this.#options.ended?.();
      });
      this.#underWay.set(round, slow);
    }
    this.#sayIfLate(Math.max(0, ...taken.map((turn) => turn.lateMs)), nowMs);
    return Math.max(0, this.#schedule.nextDueMs(nowMs) - nowMs);
  }

  /** Ends the probes under way and forgets all addresses: the attempt is over. */
  stop(): void {
    for (const [key, watched] of this.#watched) this.#leave(key, watched);
  }

  /** Waits for the probes and signals under way. */
  async settle(): Promise<void> {
    await Promise.all(this.#underWay.keys());
    await Promise.all(this.#telling);
  }

  #startOf(probed: ProbedAddress): Watched {
    return {
      probed,
      verdict: startingVerdict(this.#first ? probed.published : null),
      latest: null,
      failingSinceMs: 0,
      toldMs: 0,
      tellings: 0,
      leaving: new AbortController(),
    };
  }

  #leave(key: string, { leaving }: Watched): void {
    this.#watched.delete(key);
    leaving.abort();
  }

  #change(key: string, watched: Watched, probed: ProbedAddress): void {
    const otherwise = isProbedOtherwise(watched.probed, probed);
    watched.probed = probed;
    if (otherwise) this.#schedule.hasten(key, this.#options.now());
  }

  async #round(key: string): Promise<void> {
    const watched = this.#watched.get(key);
    if (watched === undefined) return;
    const { log, now, random } = this.#options;
    const { probed } = watched;
    const startedMs = now();
    let outcome: ProbeOutcome | null = null;
    let tookMs = 0;
    try {
      outcome = await this.#probe(probed, watched.leaving.signal);
      tookMs = now() - startedMs;
      // The address may have gone meanwhile, and with it everybody who wants to know.
      if (outcome !== null && this.#watched.get(key) === watched)
        await this.#judge(watched, outcome);
    } catch (error) {
      log.error({ err: error, ...fieldsOf(probed) }, 'probe failed inside the operator');
    }
    if (this.#watched.get(key) !== watched) return;
    const nowMs = now();
    const next = watched.probed;
    // Nothing learnt: no reason to be eager.
    const verdict = outcome === null ? startingVerdict(true) : watched.verdict;
    const dueMs = isProbedOtherwise(probed, next)
      ? nowMs
      : nextProbeAtMs(verdict, next, { startedMs, nowMs }, random());
    this.#schedule.ended(key, dueMs, tookMs > next.intervalMs * slowShare);
  }

  /** `null` when nothing can be said: the credentials could not be asked for, or nobody wants to know any more. */
  async #probe(probed: ProbedAddress, signal: AbortSignal): Promise<ProbeOutcome | null> {
    const { credentials, log, probe } = this.#options;
    const { namespace, authSecret, ip, port, url, timeoutMs, expectedStatuses } = probed;
    const request = { ip, port, url, timeoutMs, expectedStatuses };
    try {
      if (authSecret === null) return await probe({ ...request, credentials: null }, signal);
      const used = await credentials.read(namespace, authSecret);
      const outcome = await probe({ ...request, credentials: used }, signal);
      if (outcome.reason !== 'ProxyAuthenticationRequired') return outcome;
      // The Secret was changed together with the proxy: that is no failure of the proxy.
      const renewed = await credentials.renewed(namespace, authSecret, used);
      return renewed === null ? outcome : await probe({ ...request, credentials: renewed }, signal);
    } catch (error) {
      if (isMissing(error) && error instanceof Error) {
        return { healthy: false, reason: 'ProbeFailed', message: error.message, pastProxy: false };
      }
      if (!signal.aborted) log.debug({ err: error, ...fieldsOf(probed) }, 'proxy not probed');
      return null;
    }
  }

  async #judge(watched: Watched, outcome: ProbeOutcome): Promise<void> {
    const { targetDown, log, now } = this.#options;
    const { probed, verdict: before } = watched;
    log.trace({ ...fieldsOf(probed), ...outcome }, 'proxy probed');
    watched.latest = { uid: probed.uid, url: probed.url, atMs: now(), ...outcome };
    if (outcome.healthy) targetDown.answered(probed.url);
    else if (before.failures === 0) watched.failingSinceMs = now();
    const verdict = nextVerdict(before, outcome, probed.thresholds);
    const turnedBad = verdict.healthy === false && before.healthy !== false;
    if (turnedBad && outcome.pastProxy && (await this.#spares(watched))) {
      watched.verdict = { ...verdict, healthy: before.healthy };
      return;
    }
    watched.verdict = verdict;
    if (verdict.healthy === null) return;
    if (verdict.healthy !== before.healthy) {
      watched.tellings = 0;
      log.info({ ...fieldsOf(probed), ...outcome }, 'proxy health changed');
      // A verdict is told again by a probe that bears it out, not by one that is about to overthrow it.
    } else if (outcome.healthy !== verdict.healthy || !this.#mustRetell(watched)) return;
    // Beside the probes: a Temporal that does not answer must not take their places.
    const telling = this.#tell(watched, verdict.healthy).finally(() =>
      this.#telling.delete(telling),
    );
    this.#telling.add(telling);
  }

  async #spares({ probed, failingSinceMs }: Watched): Promise<boolean> {
    return await this.#options.targetDown.spares(probed.url, failingSinceMs, this.#latest());
  }

  #latest(): LatestProbe[] {
    return [...this.#watched.values()].flatMap(({ latest }) => (latest === null ? [] : [latest]));
  }

  /** The workflow should have published it by now: the signal was lost, or its run was. */
  #mustRetell({ probed, verdict, toldMs, tellings }: Watched): boolean {
    const disagrees =
      probed.role === 'serving' ? probed.published !== verdict.healthy : verdict.healthy === true;
    if (!disagrees) return false;
    const pauseMs = Math.min(retellMaxMs, retellFirstMs * 2 ** Math.max(0, tellings - 1));
    return this.#options.now() - toldMs >= pauseMs;
  }

  #sayIfLate(byMs: number, nowMs: number): void {
    if (byMs < lateMs || nowMs - this.#saidLateMs < lateLineMs) return;
    this.#saidLateMs = nowMs;
    const { size: underWay } = this.#underWay;
    const addresses = this.#watched.size;
    this.#options.log.warn({ lateMs: byMs, underWay, addresses }, 'probes are late');
  }

  async #tell(watched: Watched, healthy: boolean): Promise<void> {
    const { run, signal, log, now } = this.#options;
    const { probed, verdict } = watched;
    watched.toldMs = now();
    watched.tellings++;
    this.#sequence++;
    const { ip, port, workflowId } = probed;
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
      log.warn({ err: error, ...fieldsOf(probed) }, 'health not told, told again later');
    }
  }
}

function fieldsOf({ namespace, name, ip, port }: ProbedAddress): Record<string, string | number> {
  return { proxy: `${namespace}/${name}`, ip, port };
}
