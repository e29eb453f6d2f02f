/**
 * `npm run bench:probes [-- --sizes=10,100,1000 --interval=30 --rounds=3]`: whether the prober of one worker keeps the
 * interval of every Proxy, over real sockets, with a tenth of the proxies hanging and a tenth slow (docs/testing.md, Benchmarks).
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { cpus, loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { Command } from 'commander';
import { pino } from 'pino';
import { z } from 'zod';
import { probedOf } from '../../activities/probe/probed.ts';
import { probeProxies } from '../../activities/probeProxies.ts';
import { parseProxy, type Proxy } from '../../api/proxy.ts';
import { wholeNumber, wholeNumbers } from '../../deploy/dev/commandLine.ts';
import { printLine, runProgram, UserError } from '../../deploy/dev/program.ts';
import {
  ipOf,
  kindOf,
  latenessOf,
  numberOf,
  probeReport,
  type Arrival,
  type ProbeCost,
} from './probeKinds.ts';

const readySchema = z.object({ port: z.number() });
const arrivalsSchema = z.object({
  arrivals: z.array(z.object({ ip: z.string(), atMs: z.number() })),
});
const targetUrl = 'http://target.example/generate_204';

interface Peers {
  port: number;
  /** Requests since the last call. */
  arrivals(): Promise<Arrival[]>;
  stop(): Promise<void>;
}

const command = new Command('npm run bench:probes --')
  .description('Whether the prober of one worker keeps the interval of every Proxy.')
  .option(
    '--sizes <n,…>',
    'so many Proxies, one size after the other',
    wholeNumbers(1, 60_000),
    [10, 100, 1_000],
  )
  .option('--interval <seconds>', 'between two probes of a Proxy', wholeNumber(), 30)
  .option('--rounds <n>', 'probes of each Proxy that are counted', wholeNumber(), 3);

runProgram(command, async () => {
  const { sizes, interval, rounds } = command.opts<{
    sizes: number[];
    interval: number;
    rounds: number;
  }>();
  const intervalMs = interval * 1_000;
  if (globalThis.gc === undefined) throw new UserError('Start it with node --expose-gc.');
  const loadBefore = loadavg()[0] ?? 0;
  const peers = await startPeers();
  const costs: ProbeCost[] = [];
  try {
    for (const size of sizes) {
      printLine(`${size} Proxies, ${rounds} rounds after one to warm up …`);
      costs.push(await costAt(size, peers, intervalMs, rounds));
    }
  } finally {
    await peers.stop();
  }
  const circumstances =
    `every ${intervalMs / 1_000} s, ${rounds} rounds each; one proxy in ten hangs, one in ten takes 2 s; ` +
    `${cpus().length} CPUs, load ${loadBefore.toFixed(1)} before and ${(loadavg()[0] ?? 0).toFixed(1)} after`;
  for (const line of ['', ...probeReport(costs, circumstances)]) printLine(line);
  return 0;
});

async function costAt(
  size: number,
  peers: Peers,
  intervalMs: number,
  rounds: number,
): Promise<ProbeCost> {
  const proxies = Array.from({ length: size }, (_, number) =>
    aProxy(number, peers.port, intervalMs),
  );
  const over = new AbortController();
  const running = probe(proxies, over.signal);
  // The first interval goes by; probes that hang are asked more eagerly then.
  await delay(intervalMs);
  await peers.arrivals();
  const before = performance.eventLoopUtilization();
  await delay(rounds * intervalMs);
  const arrivals = await peers.arrivals();
  const { utilization } = performance.eventLoopUtilization(before);
  globalThis.gc?.();
  const memory = process.memoryUsage();
  over.abort(new Error('measured'));
  await running;
  return {
    proxies: size,
    perSecond: arrivals.length / ((rounds * intervalMs) / 1_000),
    ...punctuality(proxies, arrivals, intervalMs, rounds),
    heapMiB: memory.heapUsed / 2 ** 20,
    residentMiB: memory.rss / 2 ** 20,
    busy: utilization,
  };
}

function punctuality(
  proxies: readonly Proxy[],
  arrivals: readonly Arrival[],
  intervalMs: number,
  rounds: number,
): Pick<ProbeCost, 'latenessMs' | 'missing'> {
  const shares = new Map(
    proxies.flatMap((proxy) => probedOf(proxy, targetUrl)).map(({ ip, share }) => [ip, share]),
  );
  const answering = arrivals.filter(({ ip }) => kindOf(numberOf(ip)) !== 'hangs');
  const counts = new Map<string, number>();
  for (const { ip } of answering) counts.set(ip, (counts.get(ip) ?? 0) + 1);
  const missing = [...shares.keys()]
    .filter((ip) => kindOf(numberOf(ip)) !== 'hangs')
    // One whose slot is at the very edge of the time measured may fall out of it.
    .reduce((sum, ip) => sum + Math.max(0, rounds - 1 - (counts.get(ip) ?? 0)), 0);
  const latenessMs = answering.map(({ ip, atMs }) =>
    latenessOf(atMs, intervalMs, shares.get(ip) ?? 0),
  );
  return { latenessMs, missing };
}

/** The activity itself, over Proxies that stand still. Resolves when the signal has ended it. */
async function probe(proxies: readonly Proxy[], signal: AbortSignal): Promise<void> {
  const log = pino({ level: 'warn' });
  await probeProxies(
    {
      watchProxies: () => ({ list: () => proxies, synced: () => true, stop: () => Promise.resolve() }), // prettier-ignore
      readSecret: () => Promise.reject(new Error('there is no Secret here')),
      signal: () => Promise.resolve(),
      healthCheckUrl: targetUrl,
      clock: { now: Date.now, sleep: (ms, until) => delay(ms, undefined, { signal: until }) },
      log,
    },
    {
      call: { signal, writesUntilMs: 0 },
      scheduledAtMs: Date.now(),
      heartbeat: () => undefined,
      log,
    },
    new Date().toISOString(),
  ).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

function aProxy(number: number, port: number, intervalMs: number): Proxy {
  const kind = kindOf(number);
  return parseProxy({
    metadata: {
      name: `bench-${number}`,
      namespace: 'default',
      uid: crypto.randomUUID(),
      generation: 1,
      resourceVersion: '1',
    },
    spec: {
      mode: 'External',
      address: ipOf(number),
      port,
      healthCheck: {
        intervalSeconds: intervalMs / 1_000,
        timeoutSeconds: Math.min(10, intervalMs / 1_000),
      },
    },
    status: {
      phase: kind === 'hangs' ? 'Running' : 'Ready',
      ip: ipOf(number),
      healthy: kind !== 'hangs',
    },
  });
}

async function startPeers(): Promise<Peers> {
  const child = fork(new URL('probePeers.ts', import.meta.url), { execArgv: [] });
  const message = async (): Promise<unknown> => {
    const [sent] = z.array(z.unknown()).parse(await once(child, 'message'));
    return sent;
  };
  const { port } = readySchema.parse(await message());
  return {
    port,
    arrivals: async () => {
      const answer = message();
      child.send('arrivals');
      return arrivalsSchema.parse(await answer).arrivals;
    },
    stop: async () => {
      const ended = once(child, 'exit');
      child.disconnect();
      await ended;
    },
  };
}
