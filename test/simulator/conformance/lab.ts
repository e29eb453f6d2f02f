import { startSimulator, type Simulator, type SimulatorOptions } from '../simulator.ts';
import type { Certificates } from '../certificates.ts';
import { virtualClock, type VirtualClock } from './virtualClock.ts';
import { encodeRequest, sendBytes, type Answer, type Reaction } from './wire.ts';

/** A simulator on virtual time, and what set-ups need to bring it into the state of a capture. */
export interface Lab {
  simulator: Simulator;
  clock: VirtualClock;
  /** The certificate authority that a client has to trust, in PEM. */
  ca: string;
  /** A real API call; throws when the answer is not 200. Returns `data`. */
  call(method: string, path: string, params?: Params, options?: CallOptions): Promise<unknown>;
  /** A call that starts a task; waits for its end and returns the UPID. */
  task(method: string, path: string, params?: Params, options?: CallOptions): Promise<string>;
  upload(
    storage: string,
    filename: string,
    options?: CallOptions & { node?: string; size?: number },
  ): Promise<string>;
  ended(upid: string): Promise<void>;
  advance(seconds: number): Promise<void>;
  /** Says which of our tasks stands for a captured one that the set does not start itself. */
  adopt(capturedUpid: string, simulatedUpid: string): void;
  upids: Map<string, string>;
  /** Sends bytes and lets virtual time pass until something comes back. */
  exchange(node: string, bytes: Buffer): Promise<{ reaction: Reaction; elapsedSeconds: number }>;
  exchangeAll(
    requests: readonly { node: string; bytes: Buffer }[],
  ): Promise<{ reaction: Reaction; elapsedSeconds: number }[]>;
  /** Sends an upload in pieces with real pauses (ms) between them. */
  sendWithPauses(bytes: Buffer, pausesMs: readonly number[]): Promise<Reaction>;
  /** MACs and UUIDs that somebody chose, in the fixture or in a request; all others are chance. */
  chosen(): { knownMacs: ReadonlySet<string>; knownUuids: ReadonlySet<string> };
  close(): Promise<void>;
}

/** How long the simulator of a replay keeps an idle connection; pveproxy: 5000. */
export const IDLE_MS = 1000;

type Params = Readonly<Record<string, string | number>>;
interface CallOptions {
  /** `user@realm!id`; default the operator. */
  token?: string;
  /** The answer may be anything. */
  anyStatus?: boolean;
}

const OPERATOR = 'proxy-operator@pve!operator';

export async function openLab(
  fixture: SimulatorOptions['fixture'],
  startMs: number,
  tls: Certificates,
  settings: Pick<SimulatorOptions, 'workerCacheSeconds' | 'requestsPerWorker'> = {},
): Promise<Lab> {
  const clock = virtualClock(startMs);
  const simulator = await startSimulator({
    ...settings,
    fixture,
    tls,
    clock,
    everyNode: true,
    idleMs: IDLE_MS,
  });
  const firstNode = Object.keys(simulator.urls)[0] ?? '';

  const exchangeAll: Lab['exchangeAll'] = async (requests) => {
    const before = simulator.requests.length;
    const started = clock.now();
    const progress = { sent: 0, settled: false };
    const reactions = Promise.all(
      requests.map(({ node, bytes }) => {
        const url = new URL(simulator.urls[node] ?? simulator.url);
        const target = { host: url.hostname, port: Number(url.port), ca: tls.ca };
        return sendBytes(target, bytes, () => {
          progress.sent += 1;
        });
      }),
    ).finally(() => {
      progress.settled = true;
    });
    // Time stands still until everything has arrived; then it runs from timer to timer while answers are due.
    const arrived = (): boolean =>
      progress.sent === requests.length && simulator.requests.length >= before + requests.length;
    for (let waited = 0; !progress.settled && !arrived() && waited < 200; waited += 1) {
      await pause(1);
    }
    while (isDue(progress)) {
      await pause(0);
      const working = simulator.requests.slice(before).some((request) => !request.answered);
      if (!working || !(await clock.step())) await pause(1);
    }
    return (await reactions).map((reaction) => ({
      reaction,
      elapsedSeconds: (clock.now() - started) / 1000,
    }));
  };
  const exchange: Lab['exchange'] = async (node, bytes) => {
    const [answer] = await exchangeAll([{ node, bytes }]);
    if (answer === undefined) throw new Error('no answer');
    return answer;
  };

  const send = async (
    request: Parameters<typeof encodeRequest>[0],
    options: CallOptions,
  ): Promise<unknown> => {
    const authorization = `PVEAPIToken=${options.token ?? OPERATOR}=<secret>`;
    const bytes = encodeRequest({ ...request, authorization }, { text: (text) => text });
    const { reaction } = await exchange(firstNode, bytes);
    if (options.anyStatus === true) return reaction === 'closed' ? null : dataOf(reaction);
    if (reaction === 'closed' || reaction.status !== 200) {
      const got = reaction === 'closed' ? 'no answer' : `${reaction.status} ${reaction.reason}`;
      throw new Error(`set-up: ${request.method} ${request.path}: ${got}`);
    }
    return dataOf(reaction);
  };

  const ended = async (upid: string): Promise<void> => {
    const isRunning = (): boolean => simulator.core.tasks.find(upid)?.running === true;
    for (let step = 0; isRunning() && step < 20_000; step += 1) await clock.step();
  };

  const lab: Lab = {
    simulator,
    clock,
    ca: tls.ca,
    upids: new Map(),
    exchange,
    exchangeAll,
    ended,
    call: (method, path, params = {}, options = {}) =>
      send({ method, path: `/api2/json${path}`, params: { ...params } }, options),
    task: async (method, path, params = {}, options = {}) => {
      const upid = String(await lab.call(method, path, params, options));
      await ended(upid);
      return upid;
    },
    upload: async (storage, filename, options = {}) => {
      const upid = await send(
        {
          method: 'POST',
          path: `/api2/json/nodes/${options.node ?? firstNode}/storage/${storage}/upload`,
          multipartParts: [
            { name: 'content', data: 'iso' },
            { name: 'filename', filename, data: `<${options.size ?? 374_784} bytes>` },
          ],
        },
        options,
      );
      await ended(String(upid));
      return String(upid);
    },
    advance: (seconds) => clock.advanceTo(clock.now() + seconds * 1000),
    adopt: (captured, simulated) => {
      lab.upids.set(captured, simulated);
    },
    sendWithPauses: (bytes, pausesMs) => {
      const { hostname, port } = new URL(simulator.url);
      return sendBytes(
        { host: hostname, port: Number(port), ca: tls.ca },
        bytes,
        () => undefined,
        pausesMs,
      );
    },
    chosen: choices(simulator),
    close: () => simulator.close(),
  };
  await clock.advanceTo(startMs);
  return lab;
}

function choices(simulator: Simulator): Lab['chosen'] {
  const knownMacs = new Set(['00:00:00:00:00:00']);
  const knownUuids = new Set<string>();
  let looked = 0;
  const look = (text: string): void => {
    for (const mac of text.match(/\b([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}\b/g) ?? []) {
      knownMacs.add(mac.toUpperCase());
    }
    for (const uuid of text.match(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g) ?? []) {
      knownUuids.add(uuid);
    }
  };
  look(simulator.core.fixtureText);
  return () => {
    for (const { params } of simulator.requests.slice(looked)) look(JSON.stringify(params));
    looked = simulator.requests.length;
    return { knownMacs, knownUuids };
  };
}

function isDue(progress: { settled: boolean }): boolean {
  return !progress.settled;
}

function dataOf(answer: Answer): unknown {
  const parsed: unknown = answer.body === '' ? null : JSON.parse(answer.body);
  return typeof parsed === 'object' && parsed !== null && 'data' in parsed ? parsed.data : null;
}

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** Lets virtual time go on while answers are due, until `work` is done. */
export async function passing<T>(lab: Lab, work: Promise<T>): Promise<T> {
  let done = false;
  const ended = work.finally(() => {
    done = true;
  });
  const isDone = (): boolean => done;
  while (!isDone()) {
    await pause(1);
    const due = lab.simulator.requests.slice(-30).some((request) => !request.answered);
    if (due && !isDone()) await lab.clock.step();
  }
  return ended;
}
