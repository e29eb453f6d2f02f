/** The providers config in force: loaded once at the start, followed from then on (design §2). */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { ConfigError, loadProvidersConfig, type ProvidersConfig } from '../api/providersConfig.ts';

/** What a look at the files showed, compared with the look before. */
export type ConfigNews =
  | { kind: 'accepted'; config: ProvidersConfig }
  | { kind: 'rejected'; problem: string }
  /** Token or CA of these providers changed; the config did not. */
  | { kind: 'credentials'; providers: string[] };

/** Follows one config file and the credential files it names. Never throws after the start. */
export class ConfigFile {
  readonly #path: string;
  #text: string;
  #config: ProvidersConfig;
  #problem: string | null = null;
  #credentials = new Map<string, string>();

  private constructor(path: string, text: string, config: ProvidersConfig) {
    this.#path = path;
    this.#text = text;
    this.#config = config;
  }

  /** Throws ConfigError with all problems; also when the file cannot be read. */
  static async load(path: string): Promise<ConfigFile> {
    const text = await readText(path);
    const file = new ConfigFile(path, text, loadProvidersConfig(text, path));
    file.#credentials = await file.#fingerprints();
    return file;
  }

  /** The snapshot in force: the last one that was accepted. */
  current(): ProvidersConfig {
    return this.#config;
  }

  /** Why the file as it is now is not in force, or null. */
  problem(): string | null {
    return this.#problem;
  }

  /** Looks at the files once and tells what changed since the last look. */
  async look(): Promise<ConfigNews[]> {
    const news: ConfigNews[] = [];
    const edited = await this.#lookAtConfig();
    if (edited) news.push(edited);
    const changed = await this.#lookAtCredentials();
    if (changed.length > 0) news.push({ kind: 'credentials', providers: changed });
    return news;
  }

  async #lookAtConfig(): Promise<ConfigNews | null> {
    try {
      const text = await readText(this.#path);
      if (text === this.#text && this.#problem === null) return null;
      const config = loadProvidersConfig(text, this.#path);
      this.#problem = null;
      this.#text = text;
      this.#config = config;
      return { kind: 'accepted', config };
    } catch (error) {
      const problem = error instanceof ConfigError ? error.message : String(error);
      if (problem === this.#problem) return null;
      this.#problem = problem;
      return { kind: 'rejected', problem };
    }
  }

  async #lookAtCredentials(): Promise<string[]> {
    const before = this.#credentials;
    this.#credentials = await this.#fingerprints();
    return [...this.#credentials]
      .filter(([name, print]) => before.has(name) && before.get(name) !== print)
      .map(([name]) => name);
  }

  /** Hashes of the credential files by provider; what they hold stays in the file. */
  async #fingerprints(): Promise<Map<string, string>> {
    const prints = this.#config.providers.map(async ({ name, proxmox }) => {
      const hash = createHash('sha256');
      for (const path of [proxmox.tokenFile, proxmox.caFile]) {
        if (path !== null) hash.update(await readFile(path).catch(() => 'missing'));
        hash.update('|');
      }
      return [name, hash.digest('hex')] as const;
    });
    return new Map(await Promise.all(prints));
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new ConfigError(path, [`cannot be read: ${text}`]);
  }
}
