/** Proxy credentials from Secrets, for probes. Held in memory for a minute; never logged, never returned by a step. */
import { ProviderError } from '../providerError.ts';
import type { ProbeCredentials } from './probe.ts';

export interface CredentialsOptions {
  /** As `ProxyRecords.secretKey`. */
  secretKey: (namespace: string, name: string, key: string) => Promise<Uint8Array>;
  now: () => number;
}

/** A changed Secret is used after this long at the latest, or at once after a 407. */
const freshMs = 60_000;

export class ProbeCredentialsCache {
  readonly #options: CredentialsOptions;
  readonly #known = new Map<string, { credentials: ProbeCredentials; readMs: number }>();

  constructor(options: CredentialsOptions) {
    this.#options = options;
  }

  /**
   * User name and password of a Secret. While Kubernetes does not answer, the last known ones.
   * Throws ProviderError: `CloudInitUnavailable` when Secret or key are missing, else what the read threw.
   */
  async read(namespace: string, secret: string): Promise<ProbeCredentials> {
    const id = `${namespace}/${secret}`;
    const known = this.#known.get(id);
    const now = this.#options.now();
    if (known !== undefined && now - known.readMs < freshMs) return known.credentials;
    try {
      const text = async (key: string): Promise<string> =>
        Buffer.from(await this.#options.secretKey(namespace, secret, key)).toString('utf8');
      const credentials = { username: await text('username'), password: await text('password') };
      this.#known.set(id, { credentials, readMs: now });
      return credentials;
    } catch (error) {
      if (known !== undefined && !isMissing(error)) return known.credentials;
      this.#known.delete(id);
      throw error;
    }
  }

  /** The proxy refused them: read again next time. */
  refused(namespace: string, secret: string): void {
    this.#known.delete(`${namespace}/${secret}`);
  }
}

/** The Secret or its key does not exist, as against «could not be asked». */
export function isMissing(error: unknown): boolean {
  return error instanceof ProviderError && error.facts.reason === 'CloudInitUnavailable';
}
