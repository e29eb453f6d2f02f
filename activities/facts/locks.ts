/** Who holds a lock of a VM: a running task, nobody any more, or nobody can tell; and the refusals that follow. */
import { isNotFound, isOutOfReach, transient, type ProviderError } from '../providerError.ts';
import type { ProxmoxApi, TaskRow, VmRow } from '../proxmox/api.ts';
import type { LockHolder } from '../vm/allocation.ts';
import { isTaskLock, unlockRemedy } from '../vm/state.ts';
import { isRunning, runningClones } from './tasks.ts';
import { vmAt } from './vms.ts';

/**
 * The holder of a lock that belongs to a task. `nobody` only when the VM's node answered, none of its running tasks
 * is this VM's, and the lock is still there afterwards (otherwise the task just ended).
 */
export async function lockHolder(
  api: ProxmoxApi,
  { node, vmid }: Pick<VmRow, 'node' | 'vmid'>,
  lock: string,
): Promise<LockHolder> {
  const tasks = await activeTasks(api, node);
  if (tasks === null) return { kind: 'undecided' };
  const running = tasks.filter(isRunning);
  const own = running.find(
    ({ id, type }) =>
      (id === String(vmid) && type !== 'qmclone') ||
      // A backup of several VMs names none of them.
      (lock === 'backup' && type === 'vzdump' && id === ''),
  );
  if (own !== undefined) return { kind: 'task', upid: own.upid };
  const clones = await runningClones(api, running);
  const clone = clones.find((candidate) => candidate.vmid === vmid);
  if (clone !== undefined) return { kind: 'task', upid: clone.upid };
  if (clones.some((candidate) => candidate.vmid === null)) return { kind: 'undecided' };
  return { kind: (await lockNow(api, node, vmid)) === lock ? 'nobody' : 'undecided' };
}

/** Throws Transient `VmLeftover` when the lock's task is dead, so that waiting would never end. */
export async function requireLiveLock(
  api: ProxmoxApi,
  row: Pick<VmRow, 'node' | 'vmid'>,
  lock: string,
): Promise<void> {
  if (!isTaskLock(lock)) return;
  const holder = await lockHolder(api, row, lock);
  if (holder.kind !== 'nobody') return;
  const { vmid, node } = row;
  const remedy = unlockRemedy(vmid, node);
  throw transient(
    'VmLeftover',
    `${vmAt(row)} is locked (${lock}) by a task that is dead, which no API token can clear; ${remedy}`,
    { vmid, node, lock, remedy },
  );
}

/** Transient: the lock will go, so waiting helps. `goBack`: the line then looks for the VM afresh. */
export function waitingForLock(
  { vmid, node }: Pick<VmRow, 'node' | 'vmid'>,
  lock: string,
  facts: { goBack?: true } = {},
): ProviderError {
  const message = `${vmAt({ vmid, node })} is locked (${lock}); waiting`;
  return transient('WaitingForLock', message, { vmid, node, lock, ...facts });
}

/** `null`: unlocked, or gone meanwhile. */
async function lockNow(api: ProxmoxApi, node: string, vmid: number): Promise<string | null> {
  try {
    const { values } = await api.getVmConfig(node, vmid);
    return values.lock ?? null;
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
}

async function activeTasks(api: ProxmoxApi, node: string): Promise<TaskRow[] | null> {
  try {
    return await api.listTasks(node, { activeOnly: true });
  } catch (error) {
    if (isOutOfReach(error)) return null;
    throw error;
  }
}
