/** Whether it is the probe's target that is down and not the proxies (design §8). */
import type { Logger } from 'pino';

/** The last probe of one address. */
export interface LatestProbe {
  uid: string;
  url: string;
  /** Epoch ms. */
  atMs: number;
  healthy: boolean;
  pastProxy: boolean;
}

export interface TargetDownOptions {
  /** A request for the URL without any proxy; whether it was answered. */
  reachable: (url: string) => Promise<boolean>;
  log: Logger;
  now: () => number;
}

interface Outage {
  sinceMs: number;
  /** That nobody is spared any more was logged. */
  over: boolean;
}

const fewestProxies = 3;
/** After this long nobody is spared any more: a target down for good must not hide dead proxies. */
const longestMs = 300_000;
/** A direct answer holds this long, so that a thousand failing proxies ask once. */
const freshMs = 10_000;

/**
 * At least three Proxies fail past the proxy, and none got through since `sinceMs`. One that fails at the proxy itself
 * says nothing about the target: among many there is always one that boots or is broken. A good probe from before
 * `sinceMs` says nothing either: its Proxy may be asked once an hour. Pure.
 */
export function allFailPast(url: string, sinceMs: number, latest: Iterable<LatestProbe>): boolean {
  const uids = new Set<string>();
  for (const probe of latest) {
    if (probe.url !== url) continue;
    if (probe.healthy && probe.atMs >= sinceMs) return false;
    if (!probe.healthy && probe.pastProxy) uids.add(probe.uid);
  }
  return uids.size >= fewestProxies;
}

/** Remembers by URL since when a target is down; asks it directly only when all proxies fail past themselves. */
export class TargetDown {
  readonly #options: TargetDownOptions;
  readonly #outages = new Map<string, Outage>();
  readonly #asked = new Map<string, { atMs: number; answer: Promise<boolean> }>();

  constructor(options: TargetDownOptions) {
    this.#options = options;
  }

  /** A probe of this URL went through: whatever was wrong with it is over. */
  answered(url: string): void {
    if (this.#outages.delete(url)) this.#options.log.info({ url }, 'probe target is back');
  }

  /** Whether a Proxy whose probes of this URL fail since `sinceMs` is to be spared for now. */
  async spares(url: string, sinceMs: number, latest: Iterable<LatestProbe>): Promise<boolean> {
    if (!allFailPast(url, sinceMs, latest)) return false;
    const { log, now } = this.#options;
    const known = this.#outages.get(url);
    if (known !== undefined && now() - known.sinceMs >= longestMs) {
      if (!known.over) log.warn({ url }, 'probe target down for long, proxies are marked down');
      known.over = true;
      return false;
    }
    if (await this.#reachable(url)) {
      this.answered(url);
      return false;
    }
    if (!this.#outages.has(url)) {
      this.#outages.set(url, { sinceMs: now(), over: false });
      log.warn({ url }, 'probe target down, nobody marked down');
    }
    return true;
  }

  /** One request at a time for each URL, whoever asks. */
  #reachable(url: string): Promise<boolean> {
    const { reachable, now } = this.#options;
    const known = this.#asked.get(url);
    if (known !== undefined && now() - known.atMs < freshMs) return known.answer;
    const answer = reachable(url);
    this.#asked.set(url, { atMs: now(), answer });
    return answer;
  }
}
