import type { Clock } from './clock.ts';
import { textOf } from './errors.ts';
import type { LockOwner, LockTable } from './locks.ts';

/** One worker process and its log. */
export interface Task {
  upid: string;
  node: string;
  pid: number;
  pstart: number;
  /** Epoch seconds. */
  starttime: number;
  /** Epoch ms, for measurements. */
  startedAtMs: number;
  /** `null` while it runs. */
  endedAtMs: number | null;
  type: string;
  id: string;
  /** `user@realm!token`. */
  authId: string;
  log: string[];
  running: boolean;
  /** `OK`, `WARNINGS: n`, the error text, `unexpected status`; absent while running. */
  exitstatus?: string;
  endtime?: number;
  /** Its node lost power: the others' lists show it running until that node is back (pve/cluster.md 21). */
  cutOff?: boolean;
  /** Removed from disk: `no such task`. */
  vanished: boolean;
}

/** What a worker's body may do. */
export interface Worker extends LockOwner {
  unlessKilled(): Promise<void>;
  task: Task;
  /** Counts towards `WARNINGS: n` (only `log_warn` does). */
  warn(line: string): void;
  /** Cluster seconds; throws `interrupted by signal` when the task is stopped, never returns when it is killed. */
  sleep(seconds: number): Promise<void>;
  /** Called when the process is gone, however it ended. */
  onEnd(release: () => void): void;
}

/** What a fault makes of a task. */
export interface TaskFault {
  /** Ends at once with this text instead of doing its work. */
  fail?: string;
  /** The work is done, and then it ends with this text. */
  failAfter?: string;
  warnings?: number;
  /** The worker is killed half a second in: no clean-up, `unexpected status`. */
  killAfterSeconds?: number;
  /** The work is done; its log is gone afterwards. */
  vanish?: boolean;
  /** Extra cluster seconds before the work starts. */
  delaySeconds?: number;
  /** Never ends, unless `until` resolves: then its work is done. */
  hang?: boolean;
  until?: Promise<void>;
}

export interface TaskTable {
  all: Task[];
  /** Starts a worker and returns its UPID at once. */
  start(
    spec: {
      node: string;
      type: string;
      id: string;
      authId: string;
      fault?: TaskFault;
      /** Name of the VM it makes: a clone's UPID names only the template. */
      vmName?: string;
    },
    body: (worker: Worker) => Promise<void>,
  ): string;
  find(upid: string): Task | undefined;
  /** SIGTERM: the body may clean up. Resolves when the task has ended. */
  stop(task: Task): Promise<void>;
  /** SIGKILL: nothing is cleaned up. */
  kill(task: Task): void;
  /** Kills every worker of a node, as a power cut does. */
  killNode(node: string): void;
  ended(task: Task): Promise<void>;
  /** What the daily `pveupdate` does on a node: logs older than the rotated index are removed. */
  purge(node: string): void;
  /** Consulted once for every task that starts without a fault of its own. */
  faultFor: (task: Task, vmName: string | undefined) => TaskFault | undefined;
}

class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

export function taskTable(clock: Clock, locks: LockTable, bootedAt: number): TaskTable {
  const all: Task[] = [];
  const controls = new Map<
    string,
    { stop: AbortController; done: Promise<void>; kill: () => void }
  >();
  let nextPid = 0x3a6;

  const finish = (task: Task, exitstatus: string): void => {
    task.running = false;
    task.exitstatus = exitstatus.replace(/\n+$/, '').replace(/\n/g, ' ');
    task.endedAtMs = clock.now();
    task.endtime = Math.floor(task.endedAtMs / 1000);
    if (exitstatus === 'unexpected status') return;
    if (exitstatus === 'OK') task.log.push('TASK OK');
    else if (/^WARNINGS: \d+$/.test(exitstatus)) task.log.push(`TASK ${exitstatus}`);
    else task.log.push(`TASK ERROR: ${task.exitstatus}`);
  };

  const table: TaskTable = {
    all,
    faultFor: () => undefined,
    find: (upid) => all.find((task) => task.upid === upid && !task.vanished),
    start: ({ node, type, id, authId, fault: given, vmName }, body) => {
      const now = clock.now();
      const starttime = Math.floor(now / 1000);
      const pid = nextPid;
      nextPid += 1 + Math.floor(Math.random() * 20);
      const pstart = Math.floor((now - bootedAt) / 10) + 100_000;
      const upid = `UPID:${node}:${hex(pid)}:${hex(pstart)}:${hex(starttime)}:${type}:${id}:${authId}:`;
      const task: Task = {
        upid,
        node,
        pid,
        pstart,
        starttime,
        startedAtMs: now,
        endedAtMs: null,
        type,
        id,
        authId,
        log: [],
        running: true,
        vanished: false,
      };
      forgetOldest(all, controls);
      all.push(task);
      const stop = new AbortController();
      let killed = false;
      let warnings = 0;
      const releases: (() => void)[] = [];
      let markDone = (): void => undefined;
      const done = new Promise<void>((resolve) => {
        markDone = resolve;
      });
      const worker: Worker = {
        task,
        log: (line) => {
          if (!killed) task.log.push(line);
        },
        warn: (line) => {
          warnings += 1;
          task.log.push(`WARN: ${line}`);
        },
        onEnd: (release) => {
          releases.push(release);
        },
        unlessKilled: async () => {
          if (killed) await new Promise<never>(() => undefined);
        },
        sleep: async (seconds) => {
          if (stop.signal.aborted) throw new Interrupted('interrupted by signal');
          await clock.sleep(seconds, stop.signal);
          await worker.unlessKilled();
        },
      };
      const releaseAll = (): void => {
        locks.releaseAll(worker);
        for (const release of releases.splice(0)) release();
      };
      const kill = (): void => {
        if (!task.running) return;
        killed = true;
        releaseAll();
        finish(task, 'unexpected status');
        markDone();
      };
      controls.set(upid, { stop, done, kill });
      const fault = given ?? table.faultFor(task, vmName);
      const run = async (): Promise<void> => {
        // The UPID is on its way to the client before the worker does anything.
        await clock.sleep(0.02);
        await worker.unlessKilled();
        if (fault?.delaySeconds !== undefined) await worker.sleep(fault.delaySeconds);
        if (fault?.hang === true) await hang(worker, fault.until);
        await worker.unlessKilled();
        if (fault?.fail !== undefined) throw new Error(fault.fail);
        await body(worker);
        if (fault?.failAfter !== undefined) throw new Error(fault.failAfter);
        warnings += fault?.warnings ?? 0;
      };
      if (fault?.killAfterSeconds !== undefined) {
        void clock.sleep(fault.killAfterSeconds).then(kill);
      }
      run()
        .then(() => {
          if (!task.running) return;
          finish(task, warnings > 0 ? `WARNINGS: ${warnings}` : 'OK');
        })
        .catch((error: unknown) => {
          if (!task.running) return;
          finish(task, error instanceof Interrupted ? 'received interrupt' : textOf(error));
        })
        .finally(() => {
          if (fault?.vanish === true) task.vanished = true;
          releaseAll();
          markDone();
        });
      return upid;
    },
    stop: async (task) => {
      const control = controls.get(task.upid);
      if (control === undefined || !task.running) return;
      control.stop.abort(new Interrupted('interrupted by signal'));
      const patience = clock.sleep(5);
      await Promise.race([control.done, patience]);
      control.kill();
    },
    kill: (task) => controls.get(task.upid)?.kill(),
    killNode: (node) => {
      for (const task of all) {
        if (task.node !== node || !task.running) continue;
        task.cutOff = true;
        controls.get(task.upid)?.kill();
      }
    },
    purge: (node) => {
      const archived = all.filter((task) => task.node === node && !task.running && !task.vanished);
      // `index` starts anew, and `index.1` is replaced, each time it is full (api-facts 2.5).
      const kept = archived.length - Math.max(0, archivedInIndexes(archived.length));
      for (const task of archived.slice(0, kept)) task.vanished = true;
    },
    ended: async (task) => {
      await controls.get(task.upid)?.done;
    },
  };
  return table;
}

/** For good, as far as anybody can wait, or until somebody lets it go on. */
async function hang(worker: Worker, until?: Promise<void>): Promise<void> {
  const forGood = worker.sleep(1e6);
  await Promise.race(until === undefined ? [forGood] : [forGood, until]);
}

/** Lines of `/var/log/pve/tasks/index` until it is rotated: 50 000 bytes (api-facts 2.5). */
const INDEX_LINES = 475;

/** How many of so many finished tasks stand in `index` and `index.1`. */
function archivedInIndexes(finished: number): number {
  if (finished <= INDEX_LINES) return finished;
  return INDEX_LINES + (finished % INDEX_LINES);
}

/** Records of finished tasks in memory; a node would keep no more either. */
const KEPT_TASKS = 5000;

function forgetOldest(all: Task[], controls: Map<string, unknown>): void {
  if (all.length < KEPT_TASKS) return;
  const oldest = all.findIndex((task) => !task.running);
  const [forgotten] = oldest < 0 ? [] : all.splice(oldest, 1);
  if (forgotten !== undefined) controls.delete(forgotten.upid);
}

function hex(value: number): string {
  return value.toString(16).toUpperCase().padStart(8, '0');
}

export interface ParsedUpid {
  node: string;
  pid: number;
  pstart: number;
  starttime: number;
  type: string;
  id: string;
  authId: string;
}

/** `null` when it is not the shape of a UPID (api-facts 2.1). */
export function parseUpid(upid: string): ParsedUpid | null {
  const match =
    /^UPID:([a-zA-Z0-9][a-zA-Z0-9-]*):([0-9A-Fa-f]{8}):([0-9A-Fa-f]{8,9}):([0-9A-Fa-f]{8}):([^:\s/]+):([^:\s/]*):([^:\s/]+):$/.exec(
      upid,
    );
  if (match === null) return null;
  const [, node = '', pid = '', pstart = '', starttime = '', type = '', id = '', authId = ''] =
    match;
  return {
    node,
    pid: Number.parseInt(pid, 16),
    pstart: Number.parseInt(pstart, 16),
    starttime: Number.parseInt(starttime, 16),
    type,
    id,
    authId,
  };
}
