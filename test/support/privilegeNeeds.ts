import type { PrivilegeNeeds } from '../../activities/proxmox/privileges.ts';

/** What a provider needs that uses everything there is a privilege for. */
export const everyNeed: PrivilegeNeeds = {
  node: 'pve1',
  pveVersion: '9.2.11',
  templateVmids: [9001],
  vmid: 100_000,
  isoStorage: 'proxy-seeds',
  storage: null,
  network: true,
  resize: true,
};
