/** What the integration test is told about its host, from variables of the environment; docs/testing.md has the table. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { loadProvidersConfig, type ProviderConfig } from '../../api/providersConfig.ts';
import { UserError } from '../../deploy/dev/program.ts';

export interface HostSettings {
  provider: ProviderConfig;
  /** Minutes a guest may take until its agent tells an address. */
  bootMinutes: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

const required: Record<string, string> = {
  PROXMOX_URL: 'https://<host>:8006, with a host that the certificate names',
  PROXMOX_NODE: 'the node VMs are made on, by its name in Proxmox',
  PROXMOX_ISO_STORAGE: 'the storage for seeds, with content iso',
  PROXMOX_TEMPLATE: 'VMID of the template',
};

/** Name of the one provider. */
export const providerName = 'host';

/**
 * Reads the variables through the providers config, so that they are checked as a worker checks its own. Throws
 * `UserError` with everything that is missing or wrong.
 */
export function readSettings(env: Environment): HostSettings {
  const missing = Object.entries(required).filter(([name]) => valueOf(env, name) === undefined);
  if (missing.length > 0) {
    const lines = missing.map(([name, meaning]) => `  ${name}: ${meaning}`);
    throw new UserError(`These variables are not set (docs/testing.md):\n${lines.join('\n')}`);
  }
  const skipVerification = valueOf(env, 'PROXMOX_INSECURE_SKIP_TLS_VERIFY') === '1';
  const home = (file: string): string => join(homedir(), '.config', file);
  const proxmox = {
    url: valueOf(env, 'PROXMOX_URL'),
    tokenFile: valueOf(env, 'PROXMOX_TOKEN_FILE') ?? home('proxmox-token'),
    ...(skipVerification
      ? { insecureSkipTLSVerify: true }
      : { caFile: valueOf(env, 'PROXMOX_CA_FILE') ?? home('proxmox-ca.pem') }),
    nodes: [valueOf(env, 'PROXMOX_NODE')],
    isoStorage: valueOf(env, 'PROXMOX_ISO_STORAGE'),
    storage: valueOf(env, 'PROXMOX_STORAGE'),
    bridge: valueOf(env, 'PROXMOX_BRIDGE'),
    vlanTag: numberOf(env, 'PROXMOX_VLAN_TAG'),
    vmidRange: {
      min: numberOf(env, 'PROXMOX_VMID_MIN') ?? 990_000,
      max: numberOf(env, 'PROXMOX_VMID_MAX') ?? 990_031,
    },
    templates: { template: { vmid: numberOf(env, 'PROXMOX_TEMPLATE') } },
    machineTypes: {
      small: { cores: 1, memoryMiB: 1024, diskGiB: numberOf(env, 'PROXMOX_DISK_GIB') },
    },
    requestTimeoutSeconds: numberOf(env, 'PROXMOX_REQUEST_TIMEOUT_SECONDS'),
    // A guest on a network without DHCP of its own may have a loopback address only.
    ...(valueOf(env, 'PROXMOX_ADDRESS_CIDRS') === undefined
      ? {}
      : { address: { cidrs: valueOf(env, 'PROXMOX_ADDRESS_CIDRS')?.split(',') } }),
  };
  const text = JSON.stringify({ providers: [{ name: providerName, type: 'proxmox', proxmox }] });
  const [provider] = load(text);
  if (provider === undefined) throw new UserError('the variables name no provider');
  return { provider, bootMinutes: numberOf(env, 'PROXMOX_BOOT_MINUTES') ?? 10 };
}

function load(text: string): readonly ProviderConfig[] {
  try {
    return loadProvidersConfig(text, 'the variables PROXMOX_*').providers;
  } catch (error) {
    throw new UserError(error instanceof Error ? error.message : String(error));
  }
}

/** A variable that is set to nothing is not set. */
function valueOf(env: Environment, name: string): string | undefined {
  const value = env[name];
  return value === undefined || value === '' ? undefined : value;
}

function numberOf(env: Environment, name: string): number | undefined {
  const value = valueOf(env, name);
  if (value === undefined) return undefined;
  if (!/^\d+$/.test(value)) throw new UserError(`${name} is "${value}", which is no number`);
  return Number(value);
}
