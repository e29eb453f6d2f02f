import type { Core } from './core.ts';
import { dieWith } from './errors.ts';
import type { StorageFixture } from './fixture.ts';
import type { LockOwner } from './locks.ts';
import type { Worker } from './tasks.ts';

/** Runs `body` under a lock of the cluster, e.g. `file-user_cfg`; without quorum it cannot be had (api-facts 3). */
export async function underClusterLock<T>(
  where: { core: Core; node: string },
  name: string,
  owner: LockOwner,
  body: () => Promise<T>,
): Promise<T> {
  const { core, node } = where;
  if (core.cluster.nodes.get(node)?.quorum === false) {
    for (let attempt = 1; attempt < core.times.lockWaitSeconds; attempt += 1) {
      owner.log(`trying to acquire cfs lock '${name}' ...`);
      await core.clock.sleep(1);
      await owner.unlessKilled?.();
    }
    throw dieWith(`cfs-lock '${name}' error: no quorum!`);
  }
  return core.clusterLocks.withLock(
    { path: name, timeoutSeconds: core.times.lockWaitSeconds, owner, ofCluster: true },
    async () => {
      await core.clock.sleep(core.times.clusterLockSeconds);
      await owner.unlessKilled?.();
      return body();
    },
  );
}

/** Images are made and freed under their storage's lock: of the cluster when it is shared, else of the node. */
export async function underStorageLock<T>(
  where: { core: Core; node: string },
  storage: StorageFixture,
  worker: Worker,
  body: () => Promise<T>,
): Promise<T> {
  const { core, node } = where;
  const locked = async (): Promise<T> => {
    await worker.sleep(storage.allocationSeconds ?? 0);
    return body();
  };
  if (storage.shared) return underClusterLock(where, `storage-${storage.id}`, worker, locked);
  return core.locks(node).withLock(
    {
      path: `/var/lock/pve-manager/pve-storage-${storage.id}`,
      timeoutSeconds: core.times.lockWaitSeconds,
      owner: worker,
    },
    locked,
  );
}

/** How often a worker looks whether a place is free, cluster seconds. */
const LOOK_SECONDS = 0.5;

/**
 * A storage that bears only so many copies at once: a further clone waits as long as for a lock and then fails with
 * the text of one (cases of parallel clones on one storage).
 */
export async function inCloneSlot<T>(
  where: { core: Core; node: string },
  storage: StorageFixture,
  worker: Worker,
  body: () => Promise<T>,
): Promise<T> {
  const { cloneSlots } = storage;
  if (cloneSlots === undefined) return body();
  const { copying } = where.core;
  const place = storage.shared ? storage.id : `${storage.id}@${where.node}`;
  const started = where.core.clock.now();
  while ((copying.get(place) ?? 0) >= cloneSlots) {
    if (where.core.clock.since(started) >= where.core.times.lockWaitSeconds) {
      throw dieWith(
        storage.shared
          ? `cfs-lock 'storage-${storage.id}' error: got lock request timeout`
          : `can't lock file '/var/lock/pve-manager/pve-storage-${storage.id}' - got timeout`,
      );
    }
    await worker.sleep(LOOK_SECONDS);
  }
  copying.set(place, (copying.get(place) ?? 0) + 1);
  worker.onEnd(() => {
    copying.set(place, (copying.get(place) ?? 1) - 1);
  });
  return body();
}
