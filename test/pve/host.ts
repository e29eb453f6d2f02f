/** The operator's own steps against one host, without Temporal and Kubernetes: the object is kept in memory. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { awaitTask } from '../../activities/awaitTask.ts';
import type { HealthDeps, StepContext } from '../../activities/deps.ts';
import { createProxmoxClients } from '../../activities/proxmox/clients.ts';
import type { CallContext, ProxmoxApi } from '../../activities/proxmox/api.ts';
import { ProviderError } from '../../activities/providerError.ts';
import { installationHex } from '../../activities/vm/identity.ts';
import type { Log } from '../../deploy/dev/program.ts';
import { waitBudgets, type WaitKind } from '../../workflows/contract/budgets.ts';
import type { ProxyRef } from '../../workflows/contract/proxy.ts';
import { memoryAlarms } from '../support/memoryAlarms.ts';
import { aProxy, memoryRecords, type MemoryRecords } from '../support/memoryRecords.ts';
import { providerName, type HostSettings } from './settings.ts';

/** Whose VMs they are: never those of an operator that runs on the same cluster. */
export const installationId = 'integration-test-of-egress-proxies-operator';

/** How long a failure that may go away is waited for, as a workflow would. */
const patienceMs = 3 * 60_000;
const pauseMs = 2_000;

export const cloudInit = '#cloud-config\n# made by an integration test\n';

export interface Host {
  deps: HealthDeps;
  records: MemoryRecords;
  ref: ProxyRef;
  api: ProxmoxApi;
  /** One attempt of one step. */
  run<I, R>(
    step: (deps: HealthDeps, context: StepContext, input: I) => Promise<R>,
    input: I,
  ): Promise<R>;
  /** Attempts until it succeeds; throws what is Permanent, and what lasts for minutes. */
  patiently<R>(attempt: () => Promise<R>): Promise<R>;
  /** Waits for a task, as the workflow does. */
  finished(upid: string | null, kind: WaitKind, vmid: number): Promise<void>;
  log: Log;
  close(): Promise<void>;
}

/** `signal` ends every wait, and keeps further steps from being begun. */
export function openHost(
  { provider, bootMinutes }: HostSettings,
  log: Log,
  signal: AbortSignal,
): Host {
  const quiet = pino({ level: 'silent' });
  const clients = createProxmoxClients({ log: quiet, current: () => ({ providers: [provider] }) });
  const records = memoryRecords();
  const ref = { namespace: 'integration', name: 'test', uid: randomUUID() };
  const placement = { machineType: 'small', image: 'template' };
  records.put(
    aProxy({ metadata: { ...ref }, spec: { provider: providerName, placement, cloudInit } }),
  );
  const deps: HealthDeps = {
    providers: clients,
    kubernetes: records,
    survey: () => records.survey(),
    alarms: memoryAlarms(),
    installation: { id: installationId, hex: installationHex(installationId), also: [] },
    clock: { now: Date.now, sleep: (ms, ended) => delay(ms, undefined, { signal: ended }) },
    pace: {
      taskMinMs: 100,
      taskMaxMs: 1_000,
      runningMs: 1_000,
      agentMs: pauseMs,
      budgetScale: Math.max(1, (bootMinutes * 60_000) / waitBudgets.agent),
    },
    log: quiet,
    health: { list: nothing, get: nothing, update: nothing, remove: nothing, recordEvent: nothing },
    checks: { intervalMs: 60_000, timeoutMs: 15_000 },
    wakeProxies: () => Promise.resolve(),
  };
  // A request is never cut off: what it does would be known to nobody. Ctrl-C counts between steps and in waits.
  const whole = { signal: new AbortController().signal, writesUntilMs: Number.MAX_SAFE_INTEGER };
  const context = (call: CallContext): StepContext => ({
    call,
    scheduledAtMs: Date.now(),
    heartbeat: () => undefined,
    log: quiet,
  });
  const run: Host['run'] = (step, input) => {
    signal.throwIfAborted();
    return step(deps, context(whole), input);
  };
  const host: Host = {
    deps,
    records,
    ref,
    api: clients.api(providerName, whole),
    run,
    patiently: (attempt) => patiently(attempt, signal, log),
    finished: async (upid, kind, vmid) => {
      if (upid === null) return;
      const wait = context({ ...whole, signal });
      await awaitTask(deps, wait, { provider: providerName, upid, kind, vmid });
    },
    log,
    close: () => clients.close(),
  };
  return host;
}

const nothing = (): Promise<never> => Promise.reject(new Error('there is no Kubernetes here'));

async function patiently<R>(attempt: () => Promise<R>, signal: AbortSignal, log: Log): Promise<R> {
  const untilMs = Date.now() + patienceMs;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      const lasting = !(error instanceof ProviderError) || error.errorClass === 'Permanent';
      if (lasting || Date.now() > untilMs) throw error;
      log(`waits: ${error.message}`);
      await delay(error.facts.retryAfterMs ?? pauseMs, undefined, { signal });
    }
  }
}
