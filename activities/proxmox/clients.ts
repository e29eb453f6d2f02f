/** One HTTP client per configured provider, following the config in force; `Providers` of the steps. */
import type { Logger } from 'pino';
import type { ProviderConfig, ProvidersConfig } from '../../api/providersConfig.ts';
import type { LaneProviders } from '../deps.ts';
import { transient } from '../providerError.ts';
import type { ProviderError } from '../providerError.ts';
import type { CallContext, Lane, ProxmoxApi } from './api.ts';
import { createProxmoxApi } from './client.ts';
import { readToken } from './credentials.ts';
import { createProxmoxHttp, defaultLimits } from './http.ts';
import type { ConnectionSettings, HttpLimits, ProxmoxHttp } from './http.ts';
import { observed } from './observed.ts';
import type { Observer } from './observed.ts';

/** `LaneProviders` with an end. */
export interface ProxmoxClients extends LaneProviders {
  /** Waits for requests under way, then closes every connection. */
  close(): Promise<void>;
}

const laneLimits: HttpLimits = { ...defaultLimits, connections: 1, writes: 1 };

interface Entry {
  provider: string;
  lane: Lane | null;
  /** Settings the client was built from; another value makes another client. */
  key: string;
  http: ProxmoxHttp;
}

/**
 * Clients for the providers of `current()`, which is asked on every use: an edit of the config counts for the next
 * call, and a client whose connection settings changed is drained. Nothing connects before the first request.
 */
export function createProxmoxClients(
  options: Observer & { current: () => ProvidersConfig; now?: () => number },
): ProxmoxClients {
  const entries = new Map<string, Entry>();
  const draining = new Set<Promise<void>>();
  let seen: ProvidersConfig | null = null;

  function drain(slot: string, entry: Entry): void {
    entries.delete(slot);
    const done: Promise<void> = entry.http.close().finally(() => draining.delete(done));
    draining.add(done);
  }

  /** Lets go of clients whose provider left the config or is reached in another way now. */
  function follow(config: ProvidersConfig): void {
    if (config === seen) return;
    seen = config;
    const wanted = new Map(config.providers.map((one) => [one.name, one]));
    for (const [slot, entry] of entries) {
      const one = wanted.get(entry.provider);
      if (one === undefined || keyOf(one) !== entry.key || !hasLane(one, entry.lane)) {
        drain(slot, entry);
      }
    }
  }

  function find(name: string): ProviderConfig {
    const config = options.current();
    follow(config);
    const found = config.providers.find((one) => one.name === name);
    if (found !== undefined) return found;
    throw unknownProvider(name, config);
  }

  function httpOf(config: ProviderConfig, lane: Lane | null): ProxmoxHttp {
    const slot = `${config.name} ${lane ?? ''}`;
    const known = entries.get(slot);
    if (known !== undefined) return known.http;
    const limits = lane === null ? defaultLimits : laneLimits;
    const http = createProxmoxHttp(settingsOf(config), limits, options.now);
    entries.set(slot, { provider: config.name, lane, key: keyOf(config), http });
    return http;
  }

  function bind(name: string, lane: Lane | null, call: CallContext): ProxmoxApi {
    return observed(createProxmoxApi(name, httpOf(find(name), lane), call), name, options);
  }

  return {
    config: find,
    names: () => options.current().providers.map(({ name }) => name),
    api: (name: string, call: CallContext): ProxmoxApi => bind(name, null, call),
    laneApi: bind,
    close: async () => {
      for (const [slot, entry] of entries) drain(slot, entry);
      await Promise.allSettled(draining);
    },
  };
}

/** How a configured provider is reached. */
export function settingsOf({ name, proxmox }: ProviderConfig): ConnectionSettings {
  return {
    provider: name,
    url: proxmox.url,
    tokenFile: proxmox.tokenFile,
    caFile: proxmox.caFile,
    insecureSkipTLSVerify: proxmox.insecureSkipTLSVerify,
    requestBoundMs: proxmox.requestTimeoutSeconds * 1_000,
  };
}

/** The two lines a start or reload always shows (specification, Logging). Makes no request. */
export async function warnAboutSettings(config: ProvidersConfig, log: Logger): Promise<void> {
  for (const { name, proxmox } of config.providers) {
    const fields = { provider: name };
    if (proxmox.insecureSkipTLSVerify) {
      log.warn(fields, 'WARNING: insecureSkipTLSVerify is set');
    }
    try {
      await readToken(name, proxmox.tokenFile);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const path = proxmox.tokenFile;
      const text = 'WARNING: token file is not readable; every call fails until it is';
      log.warn({ ...fields, path, reason }, text);
    }
  }
}

/** Checks come and go with their nodes. */
function hasLane({ proxmox }: ProviderConfig, lane: Lane | null): boolean {
  const node = lane?.startsWith('check/') === true ? lane.slice('check/'.length) : null;
  return node === null || proxmox.nodes.includes(node);
}

function keyOf(config: ProviderConfig): string {
  return JSON.stringify(settingsOf(config));
}

function unknownProvider(name: string, config: ProvidersConfig): ProviderError {
  const known = config.providers.map((one) => one.name).join(', ');
  const remedy = `add it to the providers config; configured are: ${known === '' ? 'none' : known}`;
  return transient('ProviderUnknown', `no provider is named ${JSON.stringify(name)}; ${remedy}`, {
    scope: 'provider',
    provider: name,
    remedy,
  });
}
