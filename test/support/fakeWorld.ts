/**
 * A tiny world for workflow tests: VMs, seeds and one Proxy object, changed by fake steps that behave as the
 * real ones promise to (contract/stepTable.ts). Tests assert what is in the world, never which step was called.
 */
import { ApplicationFailure } from '@temporalio/common';
import type { FailureFacts } from '../../workflows/contract/errors.ts';
import type {
  DeletionPolicy,
  DesiredProxy,
  ProxyEvent,
  ProxyRef,
  ProxyStatus,
} from '../../workflows/contract/proxy.ts';
import type { AllocateVmidResult, Plan, RecordedStatus } from '../../workflows/contract/steps.ts';
import type { StepName, Steps } from '../../workflows/contract/stepTable.ts';
import { fakeSteps } from './fakeSteps.ts';

export interface FakeVm {
  vmid: number;
  name: string;
  specHash: string;
  power: 'running' | 'stopped' | 'paused' | 'hibernated';
  configured: boolean;
  ip: string;
  /** Node it is on; `pv1-1` unless told otherwise. */
  node?: string;
  /** Somebody took our tag off, or switched the agent off. */
  untagged?: boolean;
  agentOff?: boolean;
  /** Its agent does not answer. */
  silent?: boolean;
  ioError?: boolean;
  /** A lock whose task is dead. */
  deadLock?: string;
  /** Times it was started. */
  starts?: number;
  /** Deletion policy its mark names. */
  policy?: DeletionPolicy;
  /** Its mark says that it stays although its Proxy went. */
  retained?: boolean;
}
/** What a planned failure of a step says: one of the contract's classes, or a hang until cancelled. */
export interface PlannedFailure {
  type: 'Permanent' | 'NotFound' | 'Transient';
  message: string;
  facts: FailureFacts;
}
type StepHook = () => Promise<void> | void;

export function desiredProxy(changes: Partial<DesiredProxy> = {}): DesiredProxy {
  return {
    generation: 1,
    mode: 'Managed',
    provider: 'pve',
    placement: { region: null, zone: 'pv1-1', machineType: 'small', image: 'debian-13' },
    address: null,
    port: 3128,
    drainSeconds: 30,
    replaceStrategy: 'CreateFirst',
    deletionPolicy: 'Delete',
    paused: false,
    specHash: 'aaaa',
    cloudInitProblem: null,
    providerProblem: null,
    retry: null,
    forceDelete: null,
    ...changes,
  };
}

export const proxyRef: ProxyRef = {
  namespace: 'egress',
  name: 'p1',
  uid: '11111111-1111-4111-8111-111111111111',
};

const nothingRecorded: RecordedStatus = {
  vmid: null,
  node: null,
  vmName: null,
  provider: null,
  specHash: null,
  ip: null,
  healthy: null,
  everReady: false,
  handled: { retry: null, forceDelete: null },
  leftovers: [],
};

export class FakeWorld {
  desired: DesiredProxy | null = desiredProxy();
  deleting = false;
  finalizer = false;
  recorded: RecordedStatus = nothingRecorded;
  readonly vms = new Map<number, FakeVm>();
  readonly seeds = new Set<string>();
  /** Address of every VM made from now on, as a static one in cloud-init gives. */
  fixedIp: string | null = null;
  /** VMIDs that somebody else took. */
  readonly takenVmids = new Set<number>();
  readonly statuses: ProxyStatus[] = [];
  readonly events: ProxyEvent[] = [];
  /** Told of each status once it is in `statuses`. */
  readonly onPublish = new Set<() => void>();
  /** VMIDs that were freed a moment ago: only who freed one gets it again. */
  readonly coolingVmids = new Set<number>();
  /** What the next runs of `allocateVmid` find, whatever there is. */
  readonly finds: AllocateVmidResult[] = [];
  /** Nodes that do not answer. */
  readonly deadNodes = new Set<string>();
  /** Of the machine type. */
  diskGiB: number | null = 10;
  /** Of the provider. */
  abortClones = false;
  /** UPIDs of clones that were told to end. */
  readonly abortedClones: string[] = [];
  /** A clone that is told to end has made its VM by then. */
  abortsComeTooLate = false;
  /** Greatest number of VMs that existed at one time. */
  peak = 0;
  private readonly failures = new Map<StepName, PlannedFailure[]>();
  private readonly hooks = new Map<StepName, StepHook>();

  /** The next runs of `step` fail so, in this order. */
  fail(step: StepName, ...failures: PlannedFailure[]): void {
    this.failures.set(step, [...(this.failures.get(step) ?? []), ...failures]);
  }

  /** `hook` runs inside the step before it does anything; it may wait, as a task does. */
  before(step: StepName, hook: StepHook): void {
    this.hooks.set(step, hook);
  }

  get status(): ProxyStatus | undefined {
    return this.statuses.at(-1);
  }

  phases(): string[] {
    return this.statuses
      .map((status) => status.phase)
      .filter((phase, index, all) => phase !== all[index - 1]);
  }

  /** Every step of this world begins so: its hook, then the failure that was planned for it. */
  async enter(step: StepName): Promise<void> {
    await this.hooks.get(step)?.();
    const failure = this.failures.get(step)?.shift();
    if (!failure) return;
    const { type, message, facts } = failure;
    throw ApplicationFailure.create({ type, message, nonRetryable: true, details: [facts] });
  }

  vmNamed(name: string, avoid: readonly number[] = []): FakeVm | undefined {
    return [...this.vms.values()].find((vm) => vm.name === name && !avoid.includes(vm.vmid));
  }

  planFor(specHash: string, provider: string, deletionPolicy: DeletionPolicy): Plan {
    const vmName = `proxy-p1-abcdef-11111111-${specHash}`;
    return {
      provider,
      vmName,
      seedFile: `${vmName}-seed.iso`,
      specHash,
      deletionPolicy,
      node: 'pv1-1',
      image: 'debian-13',
      machineType: 'small',
      templateVmid: 9001,
      cores: 1,
      memoryMiB: 1024,
      diskGiB: this.diskGiB,
      storage: null,
      isoStorage: 'proxy-seeds',
      bridge: null,
      vlanTag: null,
      vmidMin: 100000,
      vmidMax: 100099,
      requestBoundMs: 30_000,
      abortClones: this.abortClones,
    };
  }

  /** Fake activities over this world. */
  steps(): Steps {
    return fakeSteps(this);
  }

  at(vmid: number): FakeVm {
    const vm = this.vms.get(vmid);
    if (!vm) throw new Error(`the fake world has no VM ${vmid}`);
    return vm;
  }
}
