/** What goes with each provider besides its queues: its workflow, its Schedule and its ProviderHealth (design §4). */
import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import type { ProviderConfig } from '../api/providersConfig.ts';
import type { ProviderHealthRecords } from '../activities/kubernetes/healthRecords.ts';
import type { CheckSettings } from '../workflows/contract/providerSteps.ts';
import { ensureCollection } from './collections.ts';
import type { ConfigFile } from './configFile.ts';
import { publishConfigState } from './configState.ts';
import { ensureProvider } from './ensureWorkflows.ts';

export interface ServedProvidersOptions {
  config: ConfigFile;
  health: ProviderHealthRecords;
  temporal: Client;
  checks: Pick<CheckSettings, 'intervalMs' | 'timeoutMs'>;
  log: Logger;
}

/**
 * Makes sure of workflow, Schedule and ProviderHealth of every configured provider. A ProviderHealth of another name may be another
 * worker's, or left over: its workflow finds out, and ends both when nobody serves the provider.
 */
export async function ensureProviders(options: ServedProvidersOptions): Promise<void> {
  const { config, health, temporal, checks } = options;
  const configured = config.current().providers;
  for (const provider of configured) {
    await publishConfigState(options, provider.name, config.problem());
    await ensureProvider(temporal, provider.name, { ...settingsOf(provider), ...checks });
  }
  const names = new Set(configured.map(({ name }) => name));
  for (const [name, { targets }] of await health.list()) {
    if (names.has(name)) continue;
    const nodes = targets.map((target) => target.name);
    const address = targets[0]?.address ?? '';
    await ensureProvider(temporal, name, { address, nodes, ...checks });
  }
  // Last: a Temporal that knows or allows no Schedules keeps nothing else from working.
  for (const { name } of configured) await ensureCollection(temporal, name);
}

function settingsOf({ proxmox }: ProviderConfig): Pick<CheckSettings, 'address' | 'nodes'> {
  return { address: proxmox.url, nodes: proxmox.nodes };
}
