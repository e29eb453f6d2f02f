import type { Clock } from './clock.ts';
import type { VmStats } from './cluster.ts';
import { proxyError } from './errors.ts';

/** `MAX_WORKERS` of pveproxy and pvedaemon (api-facts 1.3). */
const WORKERS = 3;
/** AnyEvent::HTTP's cap of connections from one worker to one host; the rest queue silently (api-facts 1.2). */
const FORWARDED_AT_ONCE = 4;
/** After this long without an answer pveproxy gives up with 596; the other side works on. */
const PATIENCE_SECONDS = 30.05;
/** pvedaemon closes a connection that was idle for so long, also one it was too busy to read from. */
const IDLE_SECONDS = 5;
/** A worker takes a second connection when it comes before the first one's request was read. */
const BURST_SECONDS = 0.02;

/** A worker process of one node's pveproxy: whoever took a connection serves all its requests. */
export interface ProxyWorker {
  node: string;
  /** Requests served; after `requestsPerWorker` of them it closes its connections and is replaced. */
  served: number;
  draining: boolean;
  /** Its copy of the statistics (pve/cluster.md 7). */
  stats: { at: number; values: ReadonlyMap<number, VmStats> } | null;
  /** Connections to pvedaemon (`localhost`) and to other nodes. */
  slots: Map<string, Slots>;
}

interface Slots {
  taken: number;
  queue: (() => void)[];
}

export interface Daemons {
  /** Seconds for which a worker of pveproxy keeps its copy of the statistics; 0: every read is fresh. */
  cacheSeconds: number;
  /** `max_requests` of pveproxy. */
  requestsPerWorker: number;
  /** The worker of this node that takes a new connection: each in turn. */
  connect(node: string): ProxyWorker;
  /** Counts one request; says whether its connection has to be closed. */
  serve(worker: ProxyWorker): boolean;
  /** Passes a request on to this node's pvedaemon. Throws 596 when nobody answers in time. */
  inPvedaemon<T>(worker: ProxyWorker, node: string, act: () => Promise<T>): Promise<T>;
  /** Passes a request on to another node's pveproxy, under whose worker it is then served. */
  toPeer<T>(worker: ProxyWorker, node: string, act: (there: ProxyWorker) => Promise<T>): Promise<T>;
  /** pvedaemon of this node dies: whatever it was asked ends in a broken pipe. */
  killPvedaemon(node: string): void;
  /** How many of a node's workers of pvedaemon are busy. */
  busy(node: string): number;
}

/** A request on its way through pvedaemon. */
interface Job {
  run: () => Promise<void>;
  /** The connection is closed without an answer. */
  drop: () => void;
}

/** A worker process of pvedaemon: one request at a time, and nothing else meanwhile. */
interface DaemonWorker {
  current: Job | null;
  takenAt: number;
  /** Taken together with the current one, to be read after it. */
  second: Job | null;
  mayTakeSecond: boolean;
}

interface Pvedaemon {
  workers: DaemonWorker[];
  backlog: Job[];
}

/** The worker processes of all nodes and what passes between them. */
export function daemonTable(clock: Clock): Daemons {
  const proxies = new Map<string, { workers: ProxyWorker[]; next: number }>();
  const pvedaemons = new Map<string, Pvedaemon>();

  const proxyOf = (node: string): { workers: ProxyWorker[]; next: number } => {
    const known = proxies.get(node);
    if (known !== undefined) return known;
    const fresh = {
      workers: Array.from({ length: WORKERS }, () => newProxyWorker(node)),
      next: 0,
    };
    proxies.set(node, fresh);
    return fresh;
  };
  const pvedaemonOf = (node: string): Pvedaemon => {
    const known = pvedaemons.get(node);
    if (known !== undefined) return known;
    const fresh = newPvedaemon();
    pvedaemons.set(node, fresh);
    return fresh;
  };

  const take = (daemon: Pvedaemon, worker: DaemonWorker, job: Job, wasIdle: boolean): void => {
    worker.current = job;
    worker.takenAt = clock.now();
    worker.mayTakeSecond = wasIdle;
    void job.run().then(() => {
      goOn(daemon, worker);
    });
  };
  const goOn = (daemon: Pvedaemon, worker: DaemonWorker): void => {
    const { second } = worker;
    worker.current = null;
    worker.second = null;
    if (second !== null) {
      if (clock.since(worker.takenAt) <= IDLE_SECONDS) {
        take(daemon, worker, second, false);
        return;
      }
      // Its idle timer is the first thing the worker sees when it comes back (18-workers-blocked).
      second.drop();
    }
    const next = daemon.backlog.shift();
    if (next !== undefined) take(daemon, worker, next, false);
  };
  const submit = (daemon: Pvedaemon, job: Job): void => {
    const idle = daemon.workers.find((worker) => worker.current === null);
    if (idle !== undefined) {
      take(daemon, idle, job, true);
      return;
    }
    const reading = daemon.workers.find(
      (worker) =>
        worker.mayTakeSecond &&
        worker.second === null &&
        clock.since(worker.takenAt) <= BURST_SECONDS,
    );
    if (reading === undefined) daemon.backlog.push(job);
    else reading.second = job;
  };

  const daemons: Daemons = {
    cacheSeconds: 0,
    requestsPerWorker: 1000,
    connect: (node) => {
      const proxy = proxyOf(node);
      proxy.next += 1;
      const index = proxy.next % proxy.workers.length;
      const worker = proxy.workers[index] ?? newProxyWorker(node);
      if (!worker.draining) return worker;
      const fresh = newProxyWorker(node);
      proxy.workers[index] = fresh;
      return fresh;
    },
    serve: (worker) => {
      worker.served += 1;
      if (worker.served >= daemons.requestsPerWorker) worker.draining = true;
      return worker.draining;
    },
    inPvedaemon: (worker, node, act) =>
      inSlot(worker, 'localhost', () =>
        passOn(clock, act, (job) => {
          submit(pvedaemonOf(node), job);
        }),
      ),
    toPeer: (worker, node, act) => inSlot(worker, node, () => act(daemons.connect(node))),
    killPvedaemon: (node) => {
      const { workers, backlog } = pvedaemonOf(node);
      pvedaemons.set(node, newPvedaemon());
      for (const job of [...workers.flatMap((entry) => [entry.current, entry.second]), ...backlog])
        job?.drop();
      for (const worker of workers) worker.second = null;
      backlog.length = 0;
    },
    busy: (node) => pvedaemonOf(node).workers.filter((worker) => worker.current !== null).length,
  };
  return daemons;
}

/** Waits for the answer of a request, but not for ever. */
async function passOn<T>(
  clock: Clock,
  act: () => Promise<T>,
  submit: (job: Job) => void,
): Promise<T> {
  const patience = new AbortController();
  const answer = new Promise<T>((resolve, reject) => {
    clock.sleep(PATIENCE_SECONDS, patience.signal).then(
      () => {
        reject(proxyError(596, 'Connection timed out'));
      },
      () => undefined,
    );
    submit({
      run: () => act().then(resolve, reject),
      drop: () => {
        reject(proxyError(596, 'Broken pipe'));
      },
    });
  });
  try {
    return await answer;
  } finally {
    patience.abort(new Error('answered'));
  }
}

function newProxyWorker(node: string): ProxyWorker {
  return { node, served: 0, draining: false, stats: null, slots: new Map() };
}

function newPvedaemon(): Pvedaemon {
  return {
    workers: Array.from({ length: WORKERS }, () => ({
      current: null,
      takenAt: 0,
      second: null,
      mayTakeSecond: false,
    })),
    backlog: [],
  };
}

/** One of a worker's four connections to `host`, for as long as `act` takes. */
async function inSlot<T>(worker: ProxyWorker, host: string, act: () => Promise<T>): Promise<T> {
  const slots = worker.slots.get(host) ?? { taken: 0, queue: [] };
  worker.slots.set(host, slots);
  if (slots.taken >= FORWARDED_AT_ONCE) {
    await new Promise<void>((resolve) => {
      slots.queue.push(resolve);
    });
  } else slots.taken += 1;
  try {
    return await act();
  } finally {
    // The next in the queue takes the place over.
    const next = slots.queue.shift();
    if (next === undefined) slots.taken -= 1;
    else next();
  }
}
