/** What the nodes' task lists tell: who holds a lock, how many slots are taken, which VMIDs are cooling. */
import { isOutOfReach } from '../providerError.ts';
import type { NodeRow, ProxmoxApi, TaskRow, Upid } from '../proxmox/api.ts';
import { vmidCoolingMs } from '../../workflows/contract/budgets.ts';

/** A clone under way somewhere in the cluster. */
export interface RunningClone {
  upid: Upid;
  node: string;
  /** The VMID it makes; `null` while its log does not say, or may not be read. */
  vmid: number | null;
}

/** Tasks of all nodes that answer, and the nodes that did not. */
export interface TaskView {
  tasks: TaskRow[];
  silentNodes: string[];
}

type TaskFilter = Parameters<ProxmoxApi['listTasks']>[1];

/** One request per node that is online. A node that turns out not to answer is named, not thrown. */
export async function listTasksEverywhere(
  api: ProxmoxApi,
  nodes: readonly NodeRow[],
  filter: TaskFilter,
): Promise<TaskView> {
  const view: TaskView = { tasks: [], silentNodes: [] };
  const visits = nodes.map(async ({ node, status }) => {
    const rows = status === 'online' ? await tasksOf(api, node, filter) : null;
    if (rows === null) view.silentNodes.push(node);
    else view.tasks.push(...rows);
  });
  await Promise.all(visits);
  return view;
}

async function tasksOf(
  api: ProxmoxApi,
  node: string,
  filter: TaskFilter,
): Promise<TaskRow[] | null> {
  try {
    return await api.listTasks(node, filter);
  } catch (error) {
    if (isOutOfReach(error)) return null;
    throw error;
  }
}

/** The list of active tasks also holds some that ended a moment ago. */
export function isRunning({ status, endtime }: TaskRow): boolean {
  return endtime === undefined && (status === undefined || status === 'RUNNING');
}

/**
 * Running tasks of one type that our token started, on nodes that answer. The user is taken from the UPID, which
 * always holds it whole (`u@r!token`), whatever the list's own fields look like (api-facts 2.5).
 */
export function slotsTaken(tasks: readonly TaskRow[], type: string, tokenId: string): number {
  return tasks.filter(
    (task) => task.type === type && isRunning(task) && task.upid.split(':')[7] === tokenId,
  ).length;
}

const cloneLine = /^creating a clone of VM \d+ with ID (\d+)\b/;

/**
 * The VMIDs that running clones make. A UPID carries the template's VMID only; the first line of its log names
 * the new one (20-task-log-clone-running).
 */
export async function runningClones(
  api: ProxmoxApi,
  tasks: readonly TaskRow[],
): Promise<RunningClone[]> {
  const clones = tasks.filter((task) => task.type === 'qmclone' && isRunning(task));
  return Promise.all(
    clones.map(async ({ upid, node }) => ({ upid, node, vmid: await clonedVmid(api, upid) })),
  );
}

async function clonedVmid(api: ProxmoxApi, upid: Upid): Promise<number | null> {
  // Another token's log needs Sys.Audit; without it that clone stays undecided.
  const lines = await api.getTaskLog(upid, 5).catch(() => []);
  for (const line of lines) {
    const vmid = cloneLine.exec(line)?.[1];
    if (vmid !== undefined) return Number(vmid);
  }
  return null;
}

/** `since` filters by start, and a destroy may take minutes: look back further than the cooling itself. */
export function coolingSince(nowMs: number): number {
  return Math.floor((nowMs - 2 * vmidCoolingMs) / 1_000);
}

/** VMIDs that a destroy task freed within the cooling time, or is about to free. */
export function coolingVmids(tasks: readonly TaskRow[], nowMs: number): Set<number> {
  const warm = tasks.filter(
    ({ type, endtime }) =>
      type === 'qmdestroy' && (endtime === undefined || endtime * 1_000 + vmidCoolingMs > nowMs),
  );
  return new Set(warm.map(({ id }) => Number(id)));
}
