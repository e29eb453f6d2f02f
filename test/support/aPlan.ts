/** Plans, refs and provider configs for tests; state only what matters. */
import { loadProvidersConfig, type ProviderConfig } from '../../api/providersConfig.ts';
import { installationHex, seedFileFor, vmNameFor } from '../../activities/vm/identity.ts';
import type { ProxyRef } from '../../workflows/contract/proxy.ts';
import type { Plan } from '../../workflows/contract/steps.ts';

const installationId = '5f0c1d4e-0000-4000-8000-00000000c0de';
export const testInstallation = {
  id: installationId,
  hex: installationHex(installationId),
  also: [],
};

export function aRef(fields: Partial<ProxyRef> = {}): ProxyRef {
  return {
    namespace: 'egress',
    name: 'p1',
    uid: '11111111-1111-4111-8111-111111111111',
    ...fields,
  };
}

/** One node `pve1` unless told otherwise; `proxmox` overrides keys of the provider's block. */
export function aProviderConfig(
  proxmox: Record<string, unknown> = {},
  name = 'pve',
): ProviderConfig {
  const file = {
    providers: [
      {
        name,
        type: 'proxmox',
        proxmox: {
          url: 'https://127.0.0.1:8006',
          tokenFile: '/nowhere/token',
          nodes: ['pve1'],
          isoStorage: 'proxy-seeds',
          templates: { 'debian-13': { vmid: 9001 } },
          machineTypes: { small: { cores: 1, memoryMiB: 512 } },
          ...proxmox,
        },
      },
    ],
  };
  const [provider] = loadProvidersConfig(JSON.stringify(file), 'test').providers;
  if (provider === undefined) throw new Error('the test config has no provider');
  return provider;
}

/** A plan for `aRef()`; the names follow from UID, installation and spec hash unless given. */
export function aPlan(fields: Partial<Plan> = {}, ref: ProxyRef = aRef()): Plan {
  const specHash = fields.specHash ?? 'abcdef'.padEnd(64, '0');
  const vmName =
    fields.vmName ??
    vmNameFor({
      proxyName: ref.name,
      uid: ref.uid,
      installationHex: testInstallation.hex,
      specHash,
    });
  return {
    provider: 'pve',
    vmName,
    seedFile: seedFileFor(vmName),
    specHash,
    deletionPolicy: 'Delete',
    node: 'pve1',
    image: 'debian-13',
    machineType: 'small',
    templateVmid: 9001,
    cores: 1,
    memoryMiB: 512,
    diskGiB: null,
    storage: null,
    isoStorage: 'proxy-seeds',
    bridge: null,
    vlanTag: null,
    vmidMin: 100_000,
    vmidMax: 100_099,
    requestBoundMs: 30_000,
    abortClones: false,
    ...fields,
  };
}
