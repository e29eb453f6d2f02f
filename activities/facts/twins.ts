/**
 * A backup restored under another VMID has the name and the mark of its original; which of them is ours nobody can tell
 * (design §3). A row tells no name while its VM is young, and none any more when its node has been silent for five
 * minutes (pve/cluster.md 20), so what a row does not tell is read from the config.
 */
import { isNotFound, ProviderError } from '../providerError.ts';
import type { ProxmoxApi, VmRow } from '../proxmox/api.ts';

/** What the rows without a name turned out to be. */
export interface UntoldVms {
  /** By the name in their config. */
  named: ReadonlyMap<string, VmRow>;
  /** One that could not be read, so that it may have any name; `null`: all were. */
  unread: VmRow | null;
}

/** Reads the VMs whose row tells no name, up to the first one that cannot be read, its node being silent, say. */
export async function readUntold(api: ProxmoxApi, rows: readonly VmRow[]): Promise<UntoldVms> {
  const named = new Map<string, VmRow>();
  for (const row of rows.filter(isUntold)) {
    try {
      const { values } = await api.getVmConfig(row.node, row.vmid);
      if (values.name !== undefined) named.set(values.name, row);
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      if (!isNotFound(error)) return { named, unread: row };
    }
  }
  return { named, unread: null };
}

function isUntold({ vmid, type, name }: VmRow): boolean {
  return type === 'qemu' && (name === undefined || name === `VM ${vmid}`);
}
