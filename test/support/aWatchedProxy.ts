/** A Proxy with a VM that serves, as the watch of its provider sees it. */
import type { Proxy } from '../../api/proxy.ts';
import type { NodeRow, VmRow } from '../../activities/proxmox/api.ts';
import { aProxy } from './aProxy.ts';

export interface WatchedFields {
  node?: string;
  ip?: string;
  power?: string | null;
  phase?: string;
  provider?: string;
  mode?: string;
  replacement?: Record<string, unknown>;
  conditions?: Record<string, unknown>[];
  createdAt?: string;
  status?: Record<string, unknown>;
  spec?: Record<string, unknown>;
}

/** The n-th one: UID, VMID 100000 + n, name and address follow from `n`. */
export function aWatchedProxy(n: number, fields: WatchedFields = {}): Proxy {
  const { node = 'pve1', ip = `192.0.2.${n}`, power = 'running', phase = 'Ready' } = fields;
  const { provider = 'pve', createdAt = `2026-11-29T10:00:${String(n % 60).padStart(2, '0')}Z` } =
    fields;
  return aProxy({
    metadata: { name: `p${n}`, uid: uidOf(n), creationTimestamp: createdAt },
    spec: { provider, ...fields.spec },
    status: {
      phase,
      ip,
      healthy: true,
      provider,
      vmid: 100_000 + n,
      node,
      power,
      vmName: `vm-${n}`,
      conditions: fields.conditions ?? [],
      ...(fields.replacement === undefined ? {} : { replacement: fields.replacement }),
      ...fields.status,
    },
  });
}

export function uidOf(n: number): string {
  return `${String(n).padStart(8, '0')}-1111-4111-8111-111111111111`;
}

/** Its row, as it should be. */
export function aRow(n: number, fields: Partial<VmRow> = {}): VmRow {
  return {
    vmid: 100_000 + n,
    type: 'qemu',
    node: 'pve1',
    status: 'running',
    name: `vm-${n}`,
    template: false,
    tags: 'proxy_operator',
    ...fields,
  };
}

export const twoNodes: NodeRow[] = [
  { node: 'pve1', status: 'online' },
  { node: 'pve2', status: 'online' },
];
