import type { NodeState } from './cluster.ts';
import type { Core } from './core.ts';
import { powerOff } from './power.ts';
import type { StorageFixture } from './fixture.ts';
import { volidOf } from './volumes.ts';

/** An ISO file on a simulated storage. */
export interface IsoFile {
  storage: string;
  /** `null` on a shared storage. */
  node: string | null;
  name: string;
  volid: string;
  size: number;
  bytes: Buffer | null;
}

/** What an administrator, or fate, can change about a node. */
export type NodeChange = Pick<
  NodeState,
  'state' | 'quorum' | 'pvedaemon' | 'pmxcfs' | 'pvestatd' | 'sshSeconds'
>;

/** What can be changed about a storage while the cluster runs. */
export type StorageChange = Pick<
  StorageFixture,
  'mounted' | 'disabled' | 'slowSeconds' | 'allocationSeconds' | 'cloneSlots'
>;

/** Every ISO file on every storage. */
export function listIsos(core: Core): IsoFile[] {
  return core.cluster.storages.volumes
    .filter((volume) => volume.content === 'iso')
    .map((volume) => ({
      storage: volume.storage,
      node: volume.node,
      name: volume.name.replace(/^iso\//, ''),
      volid: volidOf(volume),
      size: volume.size,
      bytes: volume.bytes,
    }));
}

/** Unmounts a storage, slows it down, and so on. Throws when there is no such storage. */
export function setStorage(core: Core, id: string, change: Partial<StorageChange>): void {
  Object.assign(core.cluster.storages.get(id), change);
}

/**
 * Somebody else holds a lock for some cluster seconds: with a node, a file below `/var/lock`; without, a lock of the
 * cluster (`file-user_cfg`, `storage-<id>`, `file-jobs_cfg`, …).
 */
export function holdLock(core: Core, name: string, seconds: number, node?: string): void {
  const locks = node === undefined ? core.clusterLocks : core.locks(node);
  const owner = { log: (): void => undefined };
  locks
    .withLock({ path: name, timeoutSeconds: seconds, owner }, () => core.clock.sleep(seconds))
    .catch(() => undefined);
}

/** A VM on another node, as after a migration, its disks with it. Throws when there is no such VM or node. */
export function moveVm(core: Core, vmid: number, node: string): void {
  const vm = core.cluster.vms.get(vmid);
  if (vm === undefined) throw new Error(`no VM ${vmid}`);
  if (!core.cluster.nodes.has(node)) throw new Error(`no node '${node}'`);
  for (const volume of core.cluster.storages.volumes) {
    if (volume.vmid === vmid && volume.node === vm.node) volume.node = node;
  }
  vm.node = node;
}

/** Powers a node off or on, cuts it off, stops its daemons. Throws when there is no such node. */
export function setNode(core: Core, name: string, change: Partial<NodeChange>): void {
  const node = core.cluster.nodes.get(name);
  if (node === undefined) throw new Error(`no node '${name}'`);
  const wasDead = node.state === 'dead';
  if (change.pvedaemon === false && node.pvedaemon) core.daemons.killPvedaemon(name);
  if (change.quorum === false && node.quorum) {
    core.cluster.frozenGuests.set(name, new Set(core.cluster.vms.keys()));
  }
  if (change.quorum === true) core.cluster.frozenGuests.delete(name);
  Object.assign(node, change);
  node.changedAt = core.clock.now();
  if (wasDead && node.state === 'up') boot(core, node);
  if (node.state !== 'dead' || wasDead) return;
  // A power cut: nothing on that node gets to clean up.
  core.tasks.killNode(name);
  core.daemons.killPvedaemon(name);
  for (const vm of core.cluster.vms.values()) if (vm.node === name) powerOff(core, vm);
}

/** A node after power-on: pveproxy and pvestatd take their time (pve/cluster.md 24). */
function boot(core: Core, node: NodeState): void {
  node.bootedAt = core.clock.now();
  node.statsFrom = core.clock.now() + 24_000 * core.clock.scale;
  node.state = 'refusing';
  void core.clock.sleep(8).then(() => {
    if (node.state === 'refusing') node.state = 'up';
  });
}

/** As if an administrator had run `qm destroy`, disks included. */
export function removeVm(core: Core, vmid: number): void {
  const vm = core.cluster.vms.get(vmid);
  if (vm === undefined) return;
  powerOff(core, vm);
  for (const volume of core.cluster.storages.volumes.filter((entry) => entry.vmid === vmid)) {
    core.cluster.storages.remove(volume);
  }
  core.cluster.vms.delete(vmid);
}
