/** Sends real requests through every Proxy that has an address, for as long as the worker lives (design §8). */
import type { Logger } from 'pino';
import { request } from 'undici';
import type { Proxy } from '../api/proxy.ts';
import type { HealthSignal } from '../workflows/contract/messages.ts';
import type { Clock, StepContext } from './deps.ts';
import type { ProxyHandlers } from './kubernetes/proxyStore.ts';
import { ProbeCredentialsCache } from './probe/credentials.ts';
import { probe } from './probe/probe.ts';
import { Prober } from './probe/prober.ts';
import { TargetDown } from './probe/targetDown.ts';

/** What `probeProxies` needs beyond the other steps: a watch of its own and a way to signal. */
export interface ProbeDeps {
  /** Starts a watch of all Proxies (a `ProxyCache`) for one attempt. */
  watchProxies(handlers: ProxyHandlers): WatchedProxies;
  /** As `ProxyRecords.secretKey`. */
  secretKey(namespace: string, name: string, key: string): Promise<Uint8Array>;
  /** Sends the signal `health`; resolves also when there is no such run. */
  signal(workflowId: string, health: HealthSignal): Promise<void>;
  /** URL for Proxies that name none (`--health-check-url`). */
  healthCheckUrl: string;
  clock: Clock;
  log: Logger;
}
export interface WatchedProxies {
  list(): readonly Proxy[];
  synced(): boolean;
  stop(): Promise<void>;
}

/** Sign of life, well below the heartbeat timeout of a wait. */
const heartbeatMs = 4_000;
/** With all places taken, how often to look for a free one. */
const fullMs = 100;
const directTimeoutMs = 5_000;

/** Ends only with the attempt: by rejecting with the reason of its signal. */
export async function probeProxies(deps: ProbeDeps, context: StepContext): Promise<void> {
  const { clock, log } = deps;
  const { signal } = context.call;
  const now = (): number => clock.now();
  let wake = new AbortController();
  const woken = (): void => wake.abort();

  const prober = new Prober({
    // Later attempts sort after earlier ones.
    run: new Date(now()).toISOString(),
    probe: (target) => probe(target, signal),
    credentials: new ProbeCredentialsCache({
      secretKey: (namespace, name, key) => deps.secretKey(namespace, name, key),
      now,
    }),
    targetDown: new TargetDown({ reachable: (url) => answersDirectly(url, signal), now }),
    signal: (workflowId, health) => deps.signal(workflowId, health),
    defaultUrl: deps.healthCheckUrl,
    log,
    now,
    random: Math.random,
  });
  const proxies = deps.watchProxies({ changed: woken, deleted: woken, listed: woken });
  try {
    while (!signal.aborted) {
      context.heartbeat();
      if (proxies.synced()) prober.update(proxies.list());
      const idleMs = prober.start();
      const pauseMs = Math.min(heartbeatMs, prober.hasRoom() ? idleMs : fullMs);
      await clock.sleep(pauseMs, AbortSignal.any([signal, wake.signal])).catch(() => undefined);
      if (wake.signal.aborted) wake = new AbortController();
    }
  } finally {
    await proxies.stop();
    await prober.settle();
  }
  signal.throwIfAborted();
}

/** Whether the probe's URL answers without any proxy; anything but a server error is an answer. */
async function answersDirectly(url: string, signal: AbortSignal): Promise<boolean> {
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(directTimeoutMs)]);
    const { body, statusCode } = await request(url, { signal: limit });
    await body.dump();
    return statusCode < 500;
  } catch {
    return false;
  }
}
