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

  private async enter(step: StepName): Promise<void> {
    await this.hooks.get(step)?.();
    const failure = this.failures.get(step)?.shift();
    if (!failure) return;
    const { type, message, facts } = failure;
    throw ApplicationFailure.create({ type, message, nonRetryable: true, details: [facts] });
  }

  private vmNamed(name: string, avoid: readonly number[] = []): FakeVm | undefined {
    return [...this.vms.values()].find((vm) => vm.name === name && !avoid.includes(vm.vmid));
  }

  private planFor(specHash: string, provider: string, deletionPolicy: DeletionPolicy): Plan {
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
    let tasks = 0;
    const upid = (kind: string): string => `UPID:pv1-1:${kind}:${(tasks += 1)}:`;
    return {
      claimProxy: async () => {
        await this.enter('claimProxy');
        if (!this.desired) return { found: false };
        const firstClaim = !this.finalizer && !this.deleting;
        this.finalizer ||= !this.deleting;
        const { desired, deleting, recorded } = this;
        return { found: true, deleting, firstClaim, desired, recorded };
      },
      resolvePlacement: async ({ specHash, provider, deletionPolicy }) => {
        await this.enter('resolvePlacement');
        return this.planFor(specHash, provider, deletionPolicy);
      },
      allocateVmid: async ({ plan, avoidVmids, ownFreedVmids, existingOnly }) => {
        await this.enter('allocateVmid');
        const found = this.finds.shift();
        if (found) return found;
        if (existingOnly === true) return this.lookAt(plan, avoidVmids);
        const mine = this.vmNamed(plan.vmName, avoidVmids);
        if (mine) {
          const { vmid, power, configured: seedAttached } = mine;
          return { kind: 'ours', vmid, node: mine.node ?? 'pv1-1', power, seedAttached };
        }
        const cools = (vmid: number): boolean =>
          this.coolingVmids.has(vmid) && !ownFreedVmids.includes(vmid);
        const taken = (vmid: number): boolean =>
          this.vms.has(vmid) ||
          this.takenVmids.has(vmid) ||
          avoidVmids.includes(vmid) ||
          cools(vmid);
        let vmid = plan.vmidMin;
        while (taken(vmid)) vmid += 1;
        return {
          kind: 'vacant',
          vmid,
          templateNode: 'pv1-1',
          diskKeys: ['scsi0'],
          protectionInherited: false,
        };
      },
      cloneTemplate: async ({ plan, vmid }) => {
        await this.enter('cloneTemplate');
        const { vmName: name, specHash, deletionPolicy: policy } = plan;
        const ip = this.fixedIp ?? `192.0.2.${vmid - plan.vmidMin + 10}`;
        const blank = { power: 'stopped', configured: false, retained: false } as const;
        this.vms.set(vmid, { vmid, name, specHash, ip, policy, ...blank });
        this.peak = Math.max(this.peak, this.vms.size);
        return { upid: upid('clone'), own: true };
      },
      uploadSeed: async ({ plan }) => {
        await this.enter('uploadSeed');
        this.seeds.add(plan.seedFile);
        return { upid: upid('upload'), node: 'pv1-1', bytes: 374784 };
      },
      configureVm: async (input) => {
        await this.enter('configureVm');
        if (input.kind === 'mark') {
          const found = this.vms.get(input.vm.vmid);
          if (found?.name !== input.vm.name) return { changed: [], found: false };
          const { deletionPolicy: policy, retained } = input;
          if (retained && found.deadLock !== undefined) {
            return { changed: [], found: true, unmarkedFor: found.deadLock };
          }
          Object.assign(found, { policy, retained });
          return { changed: ['description'], found: true };
        }
        if (input.kind === 'mend') {
          const found = this.at(input.vm.vmid);
          const changed = [found.untagged ? 'tags' : '', found.agentOff ? 'agent' : ''];
          Object.assign(found, { untagged: false, agentOff: false });
          if (input.emptyDrive) Object.assign(found, { configured: false });
          return { changed: changed.filter((key) => key !== ''), found: true };
        }
        this.at(input.vm.vmid).configured = true;
        return { changed: ['ide2'], found: true };
      },
      resizeDisk: async () => {
        await this.enter('resizeDisk');
        return { upid: upid('resize') };
      },
      startVm: async ({ vm }) => {
        await this.enter('startVm');
        const started = this.at(vm.vmid);
        started.power = 'running';
        started.starts = (started.starts ?? 0) + 1;
        return { upid: upid('start') };
      },
      awaitTask: async () => {
        await this.enter('awaitTask');
        return { warnings: 0 };
      },
      awaitRunning: async ({ vm }) => {
        await this.enter('awaitRunning');
        return { node: vm.node };
      },
      pollAgent: async ({ vm }) => {
        await this.enter('pollAgent');
        const asked = this.at(vm.vmid);
        if (asked.silent) throw silentAgent(vm.vmid);
        return { ip: asked.ip, node: asked.node ?? vm.node };
      },
      publishStatus: async ({ status, events }) => {
        await this.enter('publishStatus');
        this.statuses.push(status);
        this.events.push(...events);
        return { found: this.desired !== null };
      },
      listManagedVms: async () => {
        await this.enter('listManagedVms');
        const vms = [...this.vms.values()];
        return {
          vms: vms.map(({ vmid, name, specHash }) => ({ vmid, node: 'pv1-1', name, specHash })),
          census: null,
        };
      },
      stopVm: async ({ vm, ownClone }) => {
        await this.enter('stopVm');
        if (this.abortClones && ownClone !== null) {
          this.abortedClones.push(ownClone);
          if (!this.abortsComeTooLate) this.vms.delete(vm.vmid);
          return { kind: 'aborted' };
        }
        const found = this.vms.get(vm.vmid);
        if (found?.name !== vm.name) return { kind: 'gone' };
        if (found.power === 'stopped') return { kind: 'stopped', node: 'pv1-1' };
        found.power = 'stopped';
        return { kind: 'task', node: 'pv1-1', upid: upid('stop') };
      },
      destroyVm: async ({ vm }) => {
        await this.enter('destroyVm');
        if (this.vms.get(vm.vmid)?.name !== vm.name) return { kind: 'gone' };
        this.vms.delete(vm.vmid);
        this.coolingVmids.add(vm.vmid);
        return { kind: 'task', node: 'pv1-1', upid: upid('destroy') };
      },
      deleteSeed: async ({ seedFile }) => {
        await this.enter('deleteSeed');
        if (!this.seeds.delete(seedFile)) return { kind: 'gone' };
        return { kind: 'task', upid: upid('imgdel') };
      },
      releaseProxy: async ({ events }) => {
        await this.enter('releaseProxy');
        this.events.push(...events);
        const released = this.finalizer;
        this.finalizer = false;
        this.desired = null;
        return { released };
      },
      probeProxies: () => Promise.reject(new Error('no prober in this world')),
      watchVms: () => Promise.reject(new Error('nobody watches in this world')),
      checkNode: () => Promise.reject(new Error('no nodes in this world')),
      publishHealth: () => Promise.reject(new Error('no providers in this world')),
      listSeeds: () => Promise.reject(new Error('no collection in this world')),
      signalOrphan: () => Promise.reject(new Error('no collection in this world')),
      publishOrphans: () => Promise.reject(new Error('no collection in this world')),
    };
  }

  /** A fresh look at a VM that served, as facts/existing.ts promises it. */
  private lookAt(
    { vmName, vmidMin, seedFile, isoStorage }: Plan,
    avoid: readonly number[],
  ): AllocateVmidResult {
    const vm = this.vmNamed(vmName, avoid);
    if (!vm) return { kind: 'gone', vmid: vmidMin };
    const node = vm.node ?? 'pv1-1';
    if (this.deadNodes.has(node)) {
      const facts: FailureFacts = { reason: 'Unreachable', scope: 'provider', node };
      const message = `node ${node} of VM ${vm.vmid} does not answer`;
      throw ApplicationFailure.create({
        type: 'Transient',
        message,
        nonRetryable: true,
        details: [facts],
      });
    }
    if (vm.deadLock !== undefined) {
      return { kind: 'stuck', vmid: vm.vmid, node, lock: vm.deadLock, remedy: 'qm unlock' };
    }
    const listed = this.seeds.has(seedFile) ? 'listed' : 'missing';
    return {
      kind: 'existing',
      vmid: vm.vmid,
      node,
      power: vm.power,
      ioError: vm.ioError === true,
      lock: null,
      tagged: vm.untagged !== true,
      agentEnabled: vm.agentOff !== true,
      seed: vm.configured ? listed : 'none',
      isoStorage,
    };
  }

  private at(vmid: number): FakeVm {
    const vm = this.vms.get(vmid);
    if (!vm) throw new Error(`the fake world has no VM ${vmid}`);
    return vm;
  }
}

function silentAgent(vmid: number): ApplicationFailure {
  const facts: FailureFacts = { reason: 'AgentSilent', scope: 'proxy', vmid };
  return ApplicationFailure.create({
    type: 'Transient',
    message: `the guest agent of VM ${vmid} does not answer`,
    nonRetryable: true,
    details: [facts],
  });
}
