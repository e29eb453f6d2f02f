/** Real steps over the real client, through TLS, on the simulator; Kubernetes in memory, cadences shortened. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ProviderConfig } from '../../api/providersConfig.ts';
import { createProxmoxClients, type ProxmoxClients } from '../../activities/proxmox/clients.ts';
import { ProviderError } from '../../activities/providerError.ts';
import type { Step, StepContext, StepDeps } from '../../activities/deps.ts';
import { awaitTask } from '../../activities/awaitTask.ts';
import { formatMark, seedFileFor, vmidCandidates } from '../../activities/vm/identity.ts';
import { specHash } from '../../activities/vm/specHash.ts';
import type { Reason } from '../../workflows/contract/errors.ts';
import type { ProxyRef } from '../../workflows/contract/proxy.ts';
import type { Plan, VmRef } from '../../workflows/contract/steps.ts';
import type { FixtureInput } from '../simulator/fixture.ts';
import { startSimulator, type Simulator } from '../simulator/simulator.ts';
import { newVm, type Vm } from '../simulator/cluster.ts';
import { aPlan, aProviderConfig, aRef, testInstallation } from './aPlan.ts';
import { aProxy, memoryRecords, type MemoryRecords } from './memoryRecords.ts';
import { memoryAlarms } from './memoryAlarms.ts';
import { recordingLog } from './recordingLog.ts';
import { addDisk } from './simulatedVolumes.ts';
import { operatorToken, stepFixture, tokenSecret } from './stepFixture.ts';
import { makeCa } from './tls.ts';

export interface StepRig {
  simulator: Simulator;
  records: MemoryRecords;
  clients: ProxmoxClients;
  /** The token file, which a test may change. */
  tokenFile: string;
  deps: StepDeps;
  ref: ProxyRef;
  plan: Plan;
  /** First candidate VMID of `ref`. */
  vmid: number;
  /** Lines every step and request logged. */
  lines: Record<string, unknown>[];
  /** Changes keys of the provider's `proxmox` block for the calls that follow. */
  configure(proxmox: Record<string, unknown>): void;
  /** One attempt of one step. */
  run<I, R>(step: Step<I, R>, input: I, context?: Partial<StepContext>): Promise<R>;
  /** The ProviderError a step ends with; fails when it succeeds. */
  refusal<I, R>(step: Step<I, R>, input: I, context?: Partial<StepContext>): Promise<ProviderError>;
  /** Waits for a task as the workflow does. */
  finish(upid: string | null): Promise<void>;
  /** Puts a VM there behind the API's back: ours and stopped unless told otherwise. */
  place(fields?: PlacedVm): Vm;
  vmRef(fields?: Partial<VmRef>): VmRef;
  /** Requests of this method whose path matches, oldest first. */
  sent(method: string, path: RegExp): Simulator['requests'];
  close(): Promise<void>;
}

export interface PlacedVm {
  vmid?: number;
  node?: string;
  /** `null` removes a key of an own VM's config. */
  config?: Record<string, string | null>;
  uid?: string;
  installation?: string;
  type?: 'qemu' | 'lxc';
}

const unlimited: Pick<StepContext, 'call'> = {
  call: { signal: new AbortController().signal, writesUntilMs: Number.MAX_SAFE_INTEGER },
};

/** Starts simulator and client. Close it; `withSteps` does. */
export async function startSteps(
  options: { fixture?: FixtureInput; timeScale?: number; ref?: ProxyRef } = {},
): Promise<StepRig> {
  const ca = await makeCa();
  const simulator = await startSimulator({
    fixture: options.fixture ?? stepFixture(),
    tls: await ca.issue(['127.0.0.1']),
    timeScale: options.timeScale ?? 0.01,
  });
  const tokenFile = join(ca.dir, 'token');
  writeFileSync(tokenFile, `${operatorToken}=${tokenSecret}\n`);
  const reach = { url: simulator.url, tokenFile, caFile: ca.caFile, nodes: ['pve1', 'pve2'] };
  const range = { vmidRange: { min: 100_000, max: 100_099 } };
  let provider: ProviderConfig = aProviderConfig({ ...reach, ...range });
  const { log, lines } = recordingLog();
  const clients = createProxmoxClients({ log, current: () => ({ providers: [provider] }) });
  const records = memoryRecords();
  const alarms = memoryAlarms();
  const ref = options.ref ?? aRef();
  const proxy = aProxy({ metadata: { ...ref } });
  records.put(proxy);
  const plan = aPlan({ specHash: hashOf('#cloud-config\n') }, ref);
  const [vmid = 0] = vmidCandidates(ref.uid, plan.vmidMin, plan.vmidMax);
  const deps: StepDeps = {
    providers: clients,
    kubernetes: records,
    survey: () => records.survey(),
    alarms,
    installation: testInstallation,
    clock: { now: Date.now, sleep: (ms, signal) => delay(ms, undefined, { signal }) },
    pace: { taskMinMs: 5, taskMaxMs: 20, runningMs: 10, agentMs: 20, budgetScale: 1 },
    log,
  };
  const contextOf = (context: Partial<StepContext> = {}): StepContext => ({
    ...unlimited,
    scheduledAtMs: Date.now(),
    heartbeat: () => undefined,
    log,
    ...context,
  });
  const run: StepRig['run'] = (step, input, context) => step(deps, contextOf(context), input);
  const rig: StepRig = {
    simulator,
    records,
    clients,
    tokenFile,
    deps,
    ref,
    plan,
    vmid,
    lines,
    configure: (proxmox) => {
      provider = aProviderConfig({ ...reach, ...range, ...proxmox });
    },
    run,
    refusal: async (step, input, context) => {
      try {
        await run(step, input, context);
      } catch (error) {
        if (error instanceof ProviderError) return error;
        throw error;
      }
      throw new Error('the step succeeded');
    },
    finish: async (upid) => {
      if (upid === null) return;
      await run(awaitTask, { provider: 'pve', upid, kind: 'clone', vmid });
    },
    place: (fields = {}) => placeVm(simulator, plan, ref, vmid, fields),
    vmRef: (fields = {}) => ({ provider: 'pve', vmid, node: 'pve1', name: plan.vmName, ...fields }),
    sent: (method, path) =>
      simulator.requests.filter((seen) => seen.method === method && path.test(seen.path)),
    close: async () => {
      const { tasks } = simulator.core;
      const running = tasks.all.filter((task) => task.running);
      await Promise.all([clients.close(), ...running.map((task) => tasks.stop(task))]);
      await simulator.close();
      rmSync(ca.dir, { recursive: true });
    },
  };
  return rig;
}

/** Runs a body with a rig and always takes it down. */
export async function withSteps(
  body: (rig: StepRig) => Promise<void>,
  options: Parameters<typeof startSteps>[0] = {},
): Promise<void> {
  const rig = await startSteps(options);
  try {
    await body(rig);
  } finally {
    await rig.close();
  }
}

/** The spec hash of `aProxy()` with this cloud-init. */
export function hashOf(cloudInit: string): string {
  const placement = { region: null, zone: null, machineType: 'small', image: 'debian-13' };
  return specHash({ mode: 'Managed', provider: 'pve', placement, cloudInit });
}

function placeVm(
  simulator: Simulator,
  plan: Plan,
  ref: ProxyRef,
  vmid: number,
  fields: PlacedVm,
): Vm {
  const id = fields.vmid ?? vmid;
  const mark = formatMark({
    managed: 'true',
    uid: fields.uid ?? ref.uid,
    createdAt: '2026-11-29T14:50:00Z',
    installation: fields.installation ?? testInstallation.id,
    proxy: `${ref.namespace}/${ref.name}`,
    spec: plan.specHash,
    deletionPolicy: plan.deletionPolicy,
  });
  const config = new Map(
    Object.entries({
      name: plan.vmName,
      description: mark,
      agent: '1',
      boot: 'order=scsi0',
      cores: '2',
      memory: '2048',
      net0: 'virtio=BC:24:11:00:00:01,bridge=vmbr0',
      scsi0: `local:${id}/vm-${id}-disk-0.qcow2,size=64M`,
    }),
  );
  for (const [key, value] of Object.entries(fields.config ?? {})) {
    if (value === null) config.delete(key);
    else config.set(key, value);
  }
  const vm = newVm(id, fields.type ?? 'qemu', fields.node ?? 'pve1', config);
  simulator.cluster.vms.set(id, vm);
  if (config.has('scsi0')) addDisk(simulator, vm);
  simulator.refreshStats();
  return vm;
}

/** A clone takes a quarter of a minute of real time: it runs for as long as a test needs it to. */
export const longClones = {
  fixture: stepFixture({ times: { cloneSecondsPerGiB: 100_000 } }),
};

/** Lets long work come to its end within a few seconds. */
export function hurry({ simulator }: StepRig): void {
  simulator.setTimeScale(0.0001);
}

/** Fails unless the error has this reason; gives the error back. */
export function expectReason(error: ProviderError, reason: Reason): ProviderError {
  if (error.facts.reason === reason) return error;
  throw new Error(`expected ${reason}, got ${error.facts.reason}: ${error.message}`);
}

/** The seed's file name of a plan. */
export function seedOf(plan: Plan): string {
  return seedFileFor(plan.vmName);
}
