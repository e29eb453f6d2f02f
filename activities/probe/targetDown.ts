/** Whether it is the probe's target that is down and not the proxies (design §8, first version). */

/** The last probe of one address. */
export interface LatestProbe {
  uid: string;
  url: string;
  healthy: boolean;
  pastProxy: boolean;
}

export interface TargetDownOptions {
  /** A request for the URL without any proxy; whether it was answered. */
  reachable: (url: string) => Promise<boolean>;
  now: () => number;
}

const fewestProxies = 3;
/** After this long nobody is spared any more: a target down for good must not hide dead proxies. */
const longestMs = 300_000;
/** A direct answer holds this long, so that a hundred failing proxies ask once. */
const freshMs = 10_000;

/** At least three Proxies, all of them failing past the proxy. Pure. */
export function allFailPast(url: string, latest: Iterable<LatestProbe>): boolean {
  const uids = new Set<string>();
  for (const probe of latest) {
    if (probe.url !== url) continue;
    if (probe.healthy || !probe.pastProxy) return false;
    uids.add(probe.uid);
  }
  return uids.size >= fewestProxies;
}

export class TargetDown {
  readonly #options: TargetDownOptions;
  readonly #outages = new Map<string, { sinceMs: number; checkedMs: number }>();

  constructor(options: TargetDownOptions) {
    this.#options = options;
  }

  /** A probe of this URL went through: whatever was wrong with it is over. */
  answered(url: string): void {
    this.#outages.delete(url);
  }

  /** Whether a Proxy that fails at this URL is to be spared for now. */
  async spares(url: string, latest: Iterable<LatestProbe>): Promise<boolean> {
    if (!allFailPast(url, latest)) {
      this.#outages.delete(url);
      return false;
    }
    const now = this.#options.now();
    const known = this.#outages.get(url);
    if (known !== undefined && now - known.sinceMs >= longestMs) return false;
    if (known !== undefined && now - known.checkedMs < freshMs) return true;
    if (await this.#options.reachable(url)) {
      this.#outages.delete(url);
      return false;
    }
    this.#outages.set(url, { sinceMs: known?.sinceMs ?? now, checkedMs: now });
    return true;
  }
}
