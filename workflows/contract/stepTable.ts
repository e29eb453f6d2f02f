/** Every step by its name, where it runs, and what it may do. */
import type {
  ListSeedsInput,
  ListSeedsResult,
  PublishOrphansInput,
  SignalOrphanInput,
} from './collection.ts';
import type {
  AllocateVmidInput,
  AllocateVmidResult,
  AwaitRunningResult,
  AwaitTaskInput,
  AwaitTaskResult,
  ClaimProxyInput,
  ClaimProxyResult,
  CloneTemplateInput,
  CloneTemplateResult,
  ConfigureVmInput,
  ConfigureVmResult,
  Plan,
  PollAgentInput,
  PollAgentResult,
  PublishStatusInput,
  PublishStatusResult,
  ReleaseProxyInput,
  ReleaseProxyResult,
  ResolvePlacementInput,
  SubmitResult,
  UploadSeedInput,
  UploadSeedResult,
  VmStepInput,
} from './steps.ts';
import type {
  DeleteSeedInput,
  DeleteSeedResult,
  DestroyVmInput,
  DestroyVmResult,
  ListManagedVmsInput,
  ListManagedVmsResult,
  StopVmInput,
  StopVmResult,
} from './removalSteps.ts';
import type {
  CheckNodeInput,
  CheckNodeResult,
  PublishHealthInput,
  PublishHealthResult,
  WatchVmsInput,
} from './providerSteps.ts';

/** Every step by its name: activity type, label in the UI, log field and heading of the runbook. */
export interface Steps {
  claimProxy(input: ClaimProxyInput): Promise<ClaimProxyResult>;
  resolvePlacement(input: ResolvePlacementInput): Promise<Plan>;
  allocateVmid(input: AllocateVmidInput): Promise<AllocateVmidResult>;
  cloneTemplate(input: CloneTemplateInput): Promise<CloneTemplateResult>;
  uploadSeed(input: UploadSeedInput): Promise<UploadSeedResult>;
  configureVm(input: ConfigureVmInput): Promise<ConfigureVmResult>;
  resizeDisk(input: VmStepInput): Promise<SubmitResult>;
  startVm(input: VmStepInput): Promise<SubmitResult>;
  awaitTask(input: AwaitTaskInput): Promise<AwaitTaskResult>;
  awaitRunning(input: VmStepInput): Promise<AwaitRunningResult>;
  pollAgent(input: PollAgentInput): Promise<PollAgentResult>;
  publishStatus(input: PublishStatusInput): Promise<PublishStatusResult>;
  stopVm(input: StopVmInput): Promise<StopVmResult>;
  destroyVm(input: DestroyVmInput): Promise<DestroyVmResult>;
  deleteSeed(input: DeleteSeedInput): Promise<DeleteSeedResult>;
  releaseProxy(input: ReleaseProxyInput): Promise<ReleaseProxyResult>;
  listManagedVms(input: ListManagedVmsInput): Promise<ListManagedVmsResult>;
  probeProxies(): Promise<void>;
  watchVms(input: WatchVmsInput): Promise<void>;
  checkNode(input: CheckNodeInput): Promise<CheckNodeResult>;
  publishHealth(input: PublishHealthInput): Promise<PublishHealthResult>;
  listSeeds(input: ListSeedsInput): Promise<ListSeedsResult>;
  signalOrphan(input: SignalOrphanInput): Promise<void>;
  publishOrphans(input: PublishOrphansInput): Promise<void>;
}
export type StepName = keyof Steps;

/** Where a step runs, and whether it may change anything: the table that workflows, worker and tests share. */
export interface StepTraits {
  queue: 'main' | 'provider' | 'wait';
  /** `read`: Temporal may repeat it. `write`: one attempt, the workflow decides what comes next. */
  effect: 'read' | 'write';
  /** Requests to Proxmox that one attempt may send, for the attempt's time limit. */
  requests: number;
}
/** Read by the worker (which queue), by workflows/steps.ts (attempts, time limits) and by the tests that visit every step. */
export const stepTraits: Record<StepName, StepTraits> = {
  claimProxy: { queue: 'main', effect: 'read', requests: 2 },
  resolvePlacement: { queue: 'provider', effect: 'read', requests: 0 },
  allocateVmid: { queue: 'provider', effect: 'read', requests: 20 },
  cloneTemplate: { queue: 'provider', effect: 'write', requests: 10 },
  uploadSeed: { queue: 'provider', effect: 'write', requests: 4 },
  configureVm: { queue: 'provider', effect: 'write', requests: 5 },
  resizeDisk: { queue: 'provider', effect: 'write', requests: 4 },
  startVm: { queue: 'provider', effect: 'write', requests: 5 },
  awaitTask: { queue: 'wait', effect: 'read', requests: 2 },
  awaitRunning: { queue: 'wait', effect: 'read', requests: 3 },
  pollAgent: { queue: 'wait', effect: 'read', requests: 4 },
  publishStatus: { queue: 'main', effect: 'read', requests: 2 },
  stopVm: { queue: 'provider', effect: 'write', requests: 12 },
  destroyVm: { queue: 'provider', effect: 'write', requests: 16 },
  deleteSeed: { queue: 'provider', effect: 'write', requests: 16 },
  releaseProxy: { queue: 'main', effect: 'read', requests: 2 },
  listManagedVms: { queue: 'provider', effect: 'read', requests: 40 },
  probeProxies: { queue: 'main', effect: 'read', requests: 0 },
  watchVms: { queue: 'wait', effect: 'read', requests: 0 },
  // Its requests share one bound of their own, `waitMs` of the call.
  checkNode: { queue: 'wait', effect: 'read', requests: 0 },
  // It also tells Proxies, and records Events.
  publishHealth: { queue: 'main', effect: 'read', requests: 10 },
  listSeeds: { queue: 'provider', effect: 'read', requests: 40 },
  // A signal that is sent twice is heeded once.
  signalOrphan: { queue: 'main', effect: 'read', requests: 2 },
  publishOrphans: { queue: 'main', effect: 'read', requests: 20 },
};
