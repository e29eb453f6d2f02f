/** Sends real requests through every Proxy that has an address, for as long as the worker lives (design §8). */
import type { Logger } from 'pino';
import { request } from 'undici';
import type { Proxy } from '../api/proxy.ts';
import type { HealthSignal } from '../workflows/contract/messages.ts';
import type { Clock, StepContext } from './deps.ts';
import type { ProxyHandlers } from './kubernetes/proxyStore.ts';
import { ProbeCredentialsCache } from './probe/credentials.ts';
import { probe, type ProbeCredentials } from './probe/probe.ts';
import { Prober } from './probe/prober.ts';
import { TargetDown } from './probe/targetDown.ts';

/** What `probeProxies` needs beyond the other steps: a watch of its own and a way to signal. */
export interface ProbeDeps {
  /** Starts a watch of all Proxies (a `ProxyCache`) for one attempt. */
  watchProxies(handlers: ProxyHandlers): WatchedProxies;
  /** As `CredentialsOptions.readSecret`. */
  readSecret(namespace: string, name: string): Promise<ProbeCredentials>;
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
const directTimeoutMs = 5_000;

/**
 * Ends only with the attempt: by rejecting with the reason of its signal. `run` orders the signals of successive
 * attempts, whichever worker makes them: later ones sort after earlier ones.
 */
export async function probeProxies(
  deps: ProbeDeps,
  context: StepContext,
  run: string,
): Promise<void> {
  const { clock, log } = deps;
  const { signal } = context.call;
  const now = (): number => clock.now();
  const bell = new Bell(clock);
  const prober = new Prober({
    run,
    probe,
    credentials: new ProbeCredentialsCache({
      readSecret: (namespace, name) => deps.readSecret(namespace, name),
      now,
    }),
    targetDown: new TargetDown({ reachable: (url) => answersDirectly(url, signal), log, now }),
    signal: (workflowId, health) => deps.signal(workflowId, health),
    ended: () => bell.ring(),
    defaultUrl: deps.healthCheckUrl,
    log,
    now,
    random: Math.random,
  });
  let changed = true;
  const noticed = (): void => {
    changed = true;
    bell.ring();
  };
  const over = (): void => {
    prober.stop();
    bell.ring();
  };
  signal.addEventListener('abort', over, { once: true });
  const proxies = deps.watchProxies({ changed: noticed, deleted: noticed, listed: noticed });
  try {
    while (!signal.aborted) {
      context.heartbeat();
      if (changed && proxies.synced()) {
        changed = false;
        prober.update(proxies.list());
      }
      await bell.wait(Math.min(heartbeatMs, prober.start()));
    }
  } finally {
    signal.removeEventListener('abort', over);
    prober.stop();
    await proxies.stop();
    await prober.settle();
  }
  signal.throwIfAborted();
}

/** A sleep that ends early when something happens, also when it happened just before. */
class Bell {
  readonly #clock: Clock;
  #rung = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  ring(): void {
    this.#rung.abort();
  }

  async wait(ms: number): Promise<void> {
    const { signal } = this.#rung;
    await this.#clock.sleep(ms, signal).catch(() => undefined);
    if (signal.aborted) this.#rung = new AbortController();
  }
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
