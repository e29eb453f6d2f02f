/** What locks and power say about a VM. Pure. */
import type { VmStatus } from '../proxmox/api.ts';
import type { PowerState } from '../../workflows/contract/steps.ts';

/**
 * Locks that only their own task clears: once it is dead, no API token can (pve/README 18, 29; api-facts 3).
 * `suspended` is no such lock: destroy and start both work on it.
 */
const taskLocks: ReadonlySet<string> = new Set(['clone', 'create', 'destroyed', 'suspending']);

/** The lock stays for ever when no task holds it any more. */
export function isTaskLock(lock: string): boolean {
  return taskLocks.has(lock);
}

/** The VM is hibernated: its memory is on disk, and the next start would resume it. */
export const hibernationLock = 'suspended';

/** The exact lines that remove a VM whose lock no token can clear. */
export function unlockRemedy(vmid: number, node: string): string {
  return `on ${node}: qm unlock ${vmid} && qm destroy ${vmid} --purge`;
}

/**
 * Power from the live status and the lock in the config. `status` says only that a QEMU process exists, and a
 * hibernated VM reads `stopped` (api-facts 5.20).
 */
export function powerOf(status: VmStatus, lock: string | null): PowerState {
  if (status.status === 'stopped') return lock === hibernationLock ? 'hibernated' : 'stopped';
  return status.qmpstatus === 'paused' ? 'paused' : 'running';
}

/** A QEMU process exists: a paused VM counts, for start as well as for destroy (pve/README 14). */
export function hasProcess(power: PowerState): boolean {
  return power === 'running' || power === 'paused';
}
