/**
 * The steps of one worker process of a story, on the real client. A process can be cut off: Temporal hears nothing of it
 * any more, and a write it was about to send stays where it is until it is thawed.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { asyncLocalStorage, Context } from '@temporalio/activity';
import type { ProviderConfig } from '../../../api/providersConfig.ts';
import type { StepDeps } from '../../../activities/deps.ts';
import { createKubernetesSteps, createProviderSteps } from '../../../activities/index.ts';
import type { ProxmoxApi } from '../../../activities/proxmox/api.ts';
import { createProxmoxClients } from '../../../activities/proxmox/clients.ts';
import type { StepName, Steps } from '../../../workflows/contract/stepTable.ts';
import { aProviderConfig, testInstallation } from '../../support/aPlan.ts';
import { memoryAlarms } from '../../support/memoryAlarms.ts';
import { recordingLog } from '../../support/recordingLog.ts';
import { machines, vmidRange, type World } from './world.ts';

/** Steps that a Proxy's own workflow runs; rows.ts says why the others are left out. */
export type MatrixStep = Exclude<
  StepName,
  | 'probeProxies'
  | 'checkNode'
  | 'publishHealth'
  | 'listSeeds'
  | 'signalOrphan'
  | 'publishOrphans'
  | 'watchVms'
>;

export interface StepWorker {
  run(step: MatrixStep, input: unknown): Promise<unknown>;
  /** Writes wait from now on; the result tells when one does. */
  freeze(): { reached: () => boolean; thaw: () => void };
  close(): Promise<void>;
}

const writes = [
  'clone',
  'setVmConfig',
  'resize',
  'start',
  'stop',
  'destroy',
  'uploadIso',
  'deleteVolume',
  'abortTask',
] as const satisfies (keyof ProxmoxApi)[];

export function createStepWorker(
  { simulator, records, abortClones }: World,
  files: { tokenFile: string; caFile: string },
): StepWorker {
  const provider: ProviderConfig = aProviderConfig({
    url: simulator.url,
    ...files,
    vmidRange,
    machineTypes: machines,
    abortClones,
    requestTimeoutSeconds: 1,
  });
  const { log } = recordingLog();
  const clients = createProxmoxClients({ log, current: () => ({ providers: [provider] }) });
  let frozen: { arrived: boolean; gate: PromiseWithResolvers<void> } | null = null;
  const atWrite = async (): Promise<void> => {
    if (frozen === null) return;
    frozen.arrived = true;
    await frozen.gate.promise;
  };
  const deps: StepDeps = {
    providers: {
      config: (name) => clients.config(name),
      names: () => clients.names(),
      api: (name, call) => freezable(clients.api(name, call), atWrite),
    },
    kubernetes: records,
    survey: () => Promise.reject(new Error('no survey in this world')),
    alarms: memoryAlarms(),
    installation: testInstallation,
    clock: { now: Date.now, sleep: (ms, signal) => delay(ms, undefined, { signal }) },
    pace: { taskMinMs: 5, taskMaxMs: 50, runningMs: 25, agentMs: 50, budgetScale: 1 },
    log,
  };
  const hooks = { observer: { onStep: () => undefined }, shutdown: new AbortController().signal };
  const steps: AnyInput = {
    ...asAny(createKubernetesSteps(deps, hooks)),
    ...asAny(createProviderSteps(deps, hooks)),
  };
  const run = (step: MatrixStep, input: unknown): Promise<unknown> => {
    const one = steps[step];
    if (one === undefined) throw new Error(`no step ${step}`);
    return one(input);
  };
  return {
    run,
    freeze: () => {
      const mine = { arrived: false, gate: Promise.withResolvers<void>() };
      frozen = mine;
      return {
        reached: () => mine.arrived,
        thaw: () => {
          frozen = null;
          mine.gate.resolve();
        },
      };
    },
    close: () => clients.close(),
  };
}

type AnyInput = Partial<Record<string, (input: unknown) => Promise<unknown>>>;

/** Inputs come from the workflow under test; what they are is between it and the steps. */
function asAny(steps: Partial<Steps>): AnyInput {
  const entries = Object.entries(steps).map(([name, step]) => [
    name,
    (input: unknown): Promise<unknown> => Promise.resolve(Reflect.apply(step, undefined, [input])),
  ]);
  return Object.fromEntries(entries);
}

function freezable(api: ProxmoxApi, atWrite: () => Promise<void>): ProxmoxApi {
  return new Proxy(api, {
    get: (target, name, receiver) => {
      const method: unknown = Reflect.get(target, name, receiver);
      if (typeof method !== 'function' || !writes.some((write) => write === name)) return method;
      return async (...args: unknown[]): Promise<unknown> => {
        await atWrite();
        return Reflect.apply(method, target, args);
      };
    },
  });
}

/** Runs steps while Temporal hears nothing of them. */
export function muted<T>(run: () => Promise<T>): Promise<T> {
  return asyncLocalStorage.run(mutedContext(), run);
}

/** No heartbeat reaches Temporal, and nothing comes back from it. */
function mutedContext(): Context {
  return new Proxy(Context.current(), {
    get: (target, name) => {
      if (name === 'heartbeat') return () => undefined;
      if (name === 'cancellationSignal') return new AbortController().signal;
      if (name === 'client') return unreachable;
      return Reflect.get(target, name, target);
    },
  });
}

const unreachable = new Proxy(
  {},
  {
    get: () => {
      throw new Error('no route to Temporal');
    },
  },
);
