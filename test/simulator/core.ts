import type { AccessControl, Identity } from './auth.ts';
import type { Clock } from './clock.ts';
import type { Cluster } from './cluster.ts';
import type { Daemons, ProxyWorker } from './daemons.ts';
import type { FaultAction, Faults } from './faults.ts';
import type { Times } from './fixture.ts';
import type { ProxyNetwork } from './guests.ts';
import type { LockOwner, LockTable } from './locks.ts';
import type { Params, RawParams, Schema, Property } from './schema.ts';
import type { TaskFault, TaskTable, Worker } from './tasks.ts';
import type { Upload } from './uploadParser.ts';

/** Everything the endpoints work on. */
export interface Core {
  clock: Clock;
  times: Times;
  cluster: Cluster;
  tasks: TaskTable;
  /** File locks are local to a node. */
  locks(node: string): LockTable;
  access: AccessControl;
  faults: Faults;
  /** `null`: guests have addresses, but nothing listens on them. */
  network: ProxyNetwork | null;
  /** Requests that reached a guest's proxy. */
  proxyRequests: { vmid: number; line: string }[];
  /** The fixture as JSON, for who wants to know what was chosen and what is chance. */
  fixtureText: string;
  /** What the name of the object makes of a request (nameFaults.ts). */
  requestFault(target: { method: string; path: string; name: string }): FaultAction | undefined;
  daemons: Daemons;
  /** Locks of the whole cluster, kept in pmxcfs: `file-user_cfg`, `storage-<id>` (api-facts 3). */
  clusterLocks: LockTable;
  /** Running copies by storage, where a storage bears only so many. */
  copying: Map<string, number>;
}

/** One API call after routing and validation. */
export interface Call {
  core: Core;
  /** The worker of pveproxy that took the request. */
  worker: ProxyWorker;
  /** The node whose pveproxy took the request. */
  entryNode: string;
  /** The node of the path, or the entry node. */
  node: string;
  params: Params;
  who: Identity;
  upload: Upload | null;
  /** Parameters as they came, for answers that depend on «was it given at all». */
  raw: RawParams;
  /** What a fault makes of the task that this call starts. */
  taskFault: TaskFault | null;
}

export interface Check {
  core: Core;
  entryNode: string;
  who: Identity;
  raw: RawParams;
}

export interface Endpoint {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** `/nodes/{node}/qemu/{vmid}/config`; the last variable may be `{volume...}` and takes the rest. */
  path: string;
  /** Runs on the node of the path. */
  proxied?: boolean;
  /** Runs in pvedaemon, so it fails when that is down. */
  protected?: boolean;
  /** Off for ticket endpoints (01-not-available-with-token). */
  allowToken?: boolean;
  /** Runs on raw parameters, before validation and proxying (api-facts 1.1). */
  check?: (check: Check) => void;
  /** Parameters besides those of the path. */
  schema?: Schema;
  lookup?: (key: string) => Property | undefined;
  handler: (call: Call) => unknown;
}

/** A list with `total` beside `data`. */
export class Listing {
  readonly data: readonly unknown[];
  readonly total: number;

  constructor(data: readonly unknown[], total: number) {
    this.data = data;
    this.total = total;
  }
}

/** `total` is left out when it is zero (13-tasks-no-sys-audit). */
export function listBody(listing: Listing): Record<string, unknown> {
  return { data: listing.data, ...(listing.total === 0 ? {} : { total: listing.total }) };
}

export function text(params: Params, key: string): string {
  const value = params[key];
  return value === undefined ? '' : String(value);
}

export function optionalText(params: Params, key: string): string | undefined {
  const value = params[key];
  return value === undefined ? undefined : String(value);
}

export function integer(params: Params, key: string): number {
  return Number(params[key] ?? 0);
}

export function flag(params: Params, key: string): boolean | undefined {
  const value = params[key];
  return value === undefined ? undefined : value === true;
}

/** ACL path of a raw parameter; a missing one becomes `-` (api-facts 1.1). */
function aclPath(prefix: string, raw: RawParams, key: string): string {
  const value = raw[key];
  return `${prefix}/${value === undefined ? '-' : String(value)}`;
}

/** Privileges on `/vms/{vmid}`. */
export function vmPrivilege(...anyOf: readonly string[]): (check: Check) => void {
  return ({ core, who, raw }) => {
    core.access.require(who, aclPath('/vms', raw, 'vmid'), ...anyOf);
  };
}

export function nodePrivilege(...anyOf: readonly string[]): (check: Check) => void {
  return ({ core, who, raw, entryNode }) => {
    const node = raw['node'] === 'localhost' ? entryNode : String(raw['node'] ?? '-');
    core.access.require(who, `/nodes/${node}`, ...anyOf);
  };
}

export function storagePrivilege(...anyOf: readonly string[]): (check: Check) => void {
  return ({ core, who, raw }) => {
    core.access.require(who, aclPath('/storage', raw, 'storage'), ...anyOf);
  };
}

/** Starts a task of the caller, on the node of the path unless told otherwise. */
export function startTask(
  call: Call,
  type: string,
  id: string | number,
  body: (worker: Worker) => Promise<void>,
  options: { node?: string; vmName?: string } = {},
): string {
  const { node = call.node, vmName } = options;
  return call.core.tasks.start(
    {
      node,
      type,
      id: String(id),
      authId: call.who.authId,
      ...(call.taskFault === null ? {} : { fault: call.taskFault }),
      ...(vmName === undefined ? {} : { vmName }),
    },
    body,
  );
}

/** Runs `body` under the VM's file lock. */
export async function underVmLock<T>(
  call: { core: Core; node: string },
  vmid: number,
  owner: LockOwner,
  body: () => Promise<T>,
  options: { timeoutSeconds?: number; shared?: boolean } = {},
): Promise<T> {
  return call.core.locks(call.node).withLock(
    {
      path: `/var/lock/qemu-server/lock-${vmid}.conf`,
      timeoutSeconds: options.timeoutSeconds ?? call.core.times.lockWaitSeconds,
      owner,
      ...(options.shared === undefined ? {} : { shared: options.shared }),
    },
    body,
  );
}

export const silentOwner: () => LockOwner = () => ({ log: () => undefined });
