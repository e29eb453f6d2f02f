import type { Clock } from './clock.ts';
import { dieWith } from './errors.ts';

/** Who holds a file lock: released all at once when the worker process dies. */
export interface LockOwner {
  log(line: string): void;
  /** Never resolves once the process was killed: it executes nothing more, not even its clean-up. */
  unlessKilled?(): Promise<void>;
}

export interface LockRequest {
  path: string;
  shared?: boolean;
  /** Cluster seconds. */
  timeoutSeconds: number;
  owner: LockOwner;
  /** A lock of pmxcfs, named `path`: other words in logs and errors. */
  ofCluster?: boolean;
}

export interface LockTable {
  /**
   * `flock` with a timeout; runs `body` under it. Logs `trying to acquire lock...` and ` OK` as PVE::Tools::lock_file
   * does when it has to wait, and throws `can't lock file '<path>' - got timeout`; for locks of the cluster
   * `cfs-lock '<path>' error: got lock request timeout`.
   */
  withLock<T>(request: LockRequest, body: () => Promise<T>): Promise<T>;
  /** Frees what a killed process held. */
  releaseAll(owner: LockOwner): void;
}

interface Holder {
  owner: LockOwner;
  shared: boolean;
}
interface Waiter extends Holder {
  grant: () => void;
}

export function lockTable(clock: Clock): LockTable {
  const held = new Map<string, Holder[]>();
  const waiting = new Map<string, Waiter[]>();

  const compatible = (path: string, shared: boolean): boolean => {
    const holders = held.get(path) ?? [];
    return holders.length === 0 || (shared && holders.every((holder) => holder.shared));
  };
  // flock keeps no queue: whoever fits is let in, so readers can keep a writer waiting.
  const wake = (path: string): void => {
    for (const next of waiting.get(path) ?? []) {
      if (!compatible(path, next.shared)) continue;
      waiting.set(
        path,
        (waiting.get(path) ?? []).filter((entry) => entry !== next),
      );
      held.set(path, [...(held.get(path) ?? []), next]);
      next.grant();
    }
  };
  const release = (path: string, holder: Holder): void => {
    const rest = (held.get(path) ?? []).filter((entry) => entry !== holder);
    if (rest.length === 0) held.delete(path);
    else held.set(path, rest);
    wake(path);
  };

  const acquire = async (request: LockRequest): Promise<Holder> => {
    const { path, shared = false, timeoutSeconds, owner, ofCluster = false } = request;
    if (compatible(path, shared)) {
      const holder = { owner, shared };
      held.set(path, [...(held.get(path) ?? []), holder]);
      return holder;
    }
    if (!ofCluster) owner.log('trying to acquire lock...');
    let granted = false;
    const waiter: Waiter = { owner, shared, grant: () => undefined };
    const turn = new Promise<void>((resolve) => {
      waiter.grant = () => {
        granted = true;
        resolve();
      };
    });
    waiting.set(path, [...(waiting.get(path) ?? []), waiter]);
    const patience = new AbortController();
    // pmxcfs is asked every second, and each time is logged (30-noquorum-destroy-at-pve1-task-log).
    const seconds = ofCluster ? Array.from({ length: timeoutSeconds - 1 }, () => 1) : [];
    const wait = async (): Promise<void> => {
      for (const second of seconds) {
        owner.log(`trying to acquire cfs lock '${path}' ...`);
        await clock.sleep(second, patience.signal);
      }
      await clock.sleep(ofCluster ? 1 : timeoutSeconds, patience.signal);
    };
    await Promise.race([turn, wait().catch(() => undefined)]);
    patience.abort();
    await owner.unlessKilled?.();
    if (!granted) {
      waiting.set(
        path,
        (waiting.get(path) ?? []).filter((entry) => entry !== waiter),
      );
      wake(path);
      throw dieWith(
        ofCluster
          ? `cfs-lock '${path}' error: got lock request timeout`
          : `can't lock file '${path}' - got timeout`,
      );
    }
    if (!ofCluster) owner.log(' OK');
    return waiter;
  };

  return {
    withLock: async (request, body) => {
      const holder = await acquire(request);
      try {
        return await body();
      } finally {
        release(request.path, holder);
      }
    },
    releaseAll: (owner) => {
      for (const [path, waiters] of waiting) {
        waiting.set(
          path,
          waiters.filter((waiter) => waiter.owner !== owner),
        );
      }
      for (const [path, holders] of held) {
        for (const holder of holders) if (holder.owner === owner) release(path, holder);
      }
    },
  };
}

/** Per node, because `/var/lock` is local. */
export function vmLockPath(vmid: number): string {
  return `/var/lock/qemu-server/lock-${vmid}.conf`;
}
