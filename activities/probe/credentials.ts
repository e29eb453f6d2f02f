/** Proxy credentials from Secrets, for probes. Held in memory for minutes; never logged, never returned by a step. */
import { ProviderError } from '../providerError.ts';
import type { ProbeCredentials } from './probe.ts';

export interface CredentialsOptions {
  /**
   * User name and password of one Secret, in one read: two could meet a rotation in between. Throws ProviderError
   * `CloudInitUnavailable` when Secret or key are missing, anything else when it could not be asked.
   */
  readSecret: (namespace: string, name: string) => Promise<ProbeCredentials>;
  now: () => number;
}

/** A changed Secret is used after this long at the latest, or at once after a 407. */
const freshMs = 300_000;
/** A Secret that was read because of a 407 so short a time ago is not read again for another: a thousand Proxies may share it. */
const justAskedMs = 5_000;

interface Known {
  credentials: ProbeCredentials;
  readMs: number;
  /** When it was last read because of a 407, and held nothing new. */
  confirmedMs: number;
}

/** One for all Proxies of a prober; reads of one Secret at the same time are one read. */
export class ProbeCredentialsCache {
  readonly #options: CredentialsOptions;
  readonly #known = new Map<string, Known>();
  readonly #reading = new Map<string, Promise<ProbeCredentials>>();

  constructor(options: CredentialsOptions) {
    this.#options = options;
  }

  /**
   * User name and password of a Secret. While Kubernetes does not answer, the last known ones.
   * Throws ProviderError: `CloudInitUnavailable` when Secret or key are missing, else what the read threw.
   */
  async read(namespace: string, secret: string): Promise<ProbeCredentials> {
    const known = this.#known.get(idOf(namespace, secret));
    if (known !== undefined && this.#options.now() - known.readMs < freshMs) {
      return known.credentials;
    }
    try {
      return await this.#readNow(namespace, secret);
    } catch (error) {
      if (known !== undefined && !isMissing(error)) return known.credentials;
      throw error;
    }
  }

  /** The proxy refused `used`: what the Secret holds now when that is something else, `null` when there is nothing newer. */
  async renewed(
    namespace: string,
    secret: string,
    used: ProbeCredentials,
  ): Promise<ProbeCredentials | null> {
    const known = this.#known.get(idOf(namespace, secret));
    if (known !== undefined && !isSame(known.credentials, used)) return known.credentials;
    const nowMs = this.#options.now();
    if (known !== undefined && nowMs - known.confirmedMs < justAskedMs) return null;
    try {
      const newest = await this.#readNow(namespace, secret);
      if (!isSame(newest, used)) return newest;
      const confirmed = this.#known.get(idOf(namespace, secret));
      if (confirmed !== undefined) confirmed.confirmedMs = nowMs;
      return null;
    } catch {
      return null;
    }
  }

  /** Whoever asks while a Secret is being read gets the same answer. */
  #readNow(namespace: string, secret: string): Promise<ProbeCredentials> {
    const id = idOf(namespace, secret);
    const underWay = this.#reading.get(id);
    if (underWay !== undefined) return underWay;
    const reading = this.#fetch(id, namespace, secret).finally(() => this.#reading.delete(id));
    this.#reading.set(id, reading);
    return reading;
  }

  async #fetch(id: string, namespace: string, secret: string): Promise<ProbeCredentials> {
    try {
      const credentials = await this.#options.readSecret(namespace, secret);
      this.#known.set(id, { credentials, readMs: this.#options.now(), confirmedMs: -Infinity });
      return credentials;
    } catch (error) {
      if (isMissing(error)) this.#known.delete(id);
      throw error;
    }
  }
}

function idOf(namespace: string, secret: string): string {
  return `${namespace}/${secret}`;
}

function isSame(one: ProbeCredentials, other: ProbeCredentials): boolean {
  return one.username === other.username && one.password === other.password;
}

/** The Secret or its key does not exist, as against «could not be asked». */
export function isMissing(error: unknown): boolean {
  return error instanceof ProviderError && error.facts.reason === 'CloudInitUnavailable';
}
