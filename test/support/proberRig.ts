/** The prober over proxies that answer as the test says, in a time that only goes on when it says so. */
import { ProbeCredentialsCache } from '../../activities/probe/credentials.ts';
import type { ProbeCredentials, ProbeOutcome, ProbeRequest } from '../../activities/probe/probe.ts';
import { Prober } from '../../activities/probe/prober.ts';
import { TargetDown } from '../../activities/probe/targetDown.ts';
import { transient } from '../../activities/providerError.ts';
import type { Proxy } from '../../api/proxy.ts';
import type { HealthSignal } from '../../workflows/contract/messages.ts';
import { aProxy } from './aProxy.ts';
import { recordingLog } from './recordingLog.ts';

type Json = Record<string, unknown>;

export const goodProbe: ProbeOutcome = {
  healthy: true,
  reason: 'ProbeSucceeded',
  message: 'ok',
  pastProxy: false,
};
export const refusedProbe: ProbeOutcome = {
  healthy: false,
  reason: 'ConnectionRefused',
  message: 'no',
  pastProxy: false,
};
export const unauthorizedProbe: ProbeOutcome = {
  ...refusedProbe,
  reason: 'ProxyAuthenticationRequired',
};
export const pastProbe: ProbeOutcome = {
  ...refusedProbe,
  reason: 'UnexpectedStatus',
  pastProxy: true,
};

export class ProberRig {
  nowMs = 1_000_000;
  /** By address; all others are good. */
  readonly outcomes = new Map<string, ProbeOutcome>();
  readonly probed: ProbeRequest[] = [];
  readonly told: (HealthSignal & { workflowId: string })[] = [];
  /** What Temporal does with a signal. */
  temporal: 'takes' | 'refuses' | 'hangs' = 'takes';
  /** No proxy answers. */
  silent = false;
  /** The password that proxies take when one is sent. */
  accepted = 'CANARY';
  targetReachable = true;
  /** Keys of the one Secret. */
  secret: Partial<ProbeCredentials> = {};
  readonly lines: Json[];
  readonly prober: Prober;

  constructor() {
    const { log, lines } = recordingLog();
    this.lines = lines;
    const now = (): number => this.nowMs;
    const reachable = (): Promise<boolean> => Promise.resolve(this.targetReachable);
    this.prober = new Prober({
      run: 'run-1',
      probe: (request, signal) => this.#probe(request, signal),
      credentials: new ProbeCredentialsCache({
        readSecret: (_namespace, name) => this.#readSecret(name),
        now,
      }),
      targetDown: new TargetDown({ reachable, log, now }),
      signal: (workflowId, health) => this.#signal(workflowId, health),
      defaultUrl: 'http://target.example/',
      log,
      now,
      random: () => 0.5,
    });
  }

  update(...proxies: Proxy[]): void {
    this.prober.update(proxies);
  }

  /** Lets time pass in steps and everything due happen. */
  async pass(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      this.prober.start();
      await this.prober.settle();
      this.nowMs += 1_000;
    }
  }

  #probe(request: ProbeRequest, signal: AbortSignal): Promise<ProbeOutcome> {
    this.probed.push(request);
    if (this.silent) return untilAborted(signal);
    const { password } = request.credentials ?? {};
    if (password !== undefined && password !== this.accepted) {
      return Promise.resolve(unauthorizedProbe);
    }
    return Promise.resolve(this.outcomes.get(request.ip) ?? goodProbe);
  }

  #readSecret(name: string): Promise<ProbeCredentials> {
    const { username, password } = this.secret;
    if (username !== undefined && password !== undefined) {
      return Promise.resolve({ username, password });
    }
    return Promise.reject(transient('CloudInitUnavailable', `Secret ${name} has no key username`));
  }

  #signal(workflowId: string, health: HealthSignal): Promise<void> {
    if (this.temporal === 'refuses') return Promise.reject(new Error('down'));
    if (this.temporal === 'hangs') return new Promise(() => undefined);
    this.told.push({ ...health, workflowId });
    return Promise.resolve();
  }
}

/** A Proxy of that name and UID. */
export function probedProxy(name: string, status: Json, spec: Json = {}): Proxy {
  return aProxy({ metadata: { name, uid: name }, spec, status });
}

function untilAborted(signal: AbortSignal): Promise<ProbeOutcome> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true });
  });
}
