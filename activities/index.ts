/** Every step of the queues, bound to what it uses; `probeProxies` and `watchVms` are bound in worker/watchers.ts. */
import type { Steps } from '../workflows/contract/stepTable.ts';
import { allocateVmid } from './allocateVmid.ts';
import { awaitRunning } from './awaitRunning.ts';
import { awaitTask } from './awaitTask.ts';
import { bindStep, type ProcessHooks } from './bindStep.ts';
import { checkNode } from './checkNode.ts';
import { claimProxy } from './claimProxy.ts';
import { cloneTemplate } from './cloneTemplate.ts';
import { configureVm } from './configureVm.ts';
import { deleteSeed } from './deleteSeed.ts';
import type { HealthDeps, StepDeps } from './deps.ts';
import { destroyVm } from './destroyVm.ts';
import { listManagedVms } from './listManagedVms.ts';
import { listSeeds } from './listSeeds.ts';
import { pollAgent } from './pollAgent.ts';
import { publishOrphans, type OrphanBoard } from './publishOrphans.ts';
import { publishHealth } from './publishHealth.ts';
import { publishStatus } from './publishStatus.ts';
import { releaseProxy } from './releaseProxy.ts';
import { resizeDisk } from './resizeDisk.ts';
import { resolvePlacement } from './resolvePlacement.ts';
import { signalOrphan, type SendOrphan } from './signalOrphan.ts';
import { startVm } from './startVm.ts';
import { stopVm } from './stopVm.ts';
import { uploadSeed } from './uploadSeed.ts';

/** Steps of the main queue: they talk to Kubernetes only. */
export type KubernetesSteps = Pick<Steps, 'claimProxy' | 'publishStatus' | 'releaseProxy'>;
/** Steps of a provider's two queues. */
export type ProviderSteps = Omit<
  Steps,
  keyof KubernetesSteps | keyof HealthSteps | keyof CollectionSteps | 'probeProxies' | 'watchVms'
>;
/** Steps of the collection of orphans that talk to Temporal and Kubernetes. */
export type CollectionSteps = Pick<Steps, 'signalOrphan' | 'publishOrphans'>;
/** Steps of the provider's own workflow. */
export type HealthSteps = Pick<Steps, 'checkNode' | 'publishHealth'>;

/** Bound to the process that runs them: its metrics are told of every attempt, its end hands waits over. */
export function createKubernetesSteps(deps: StepDeps, process: ProcessHooks): KubernetesSteps {
  return {
    claimProxy: bindStep(deps, process, 'claimProxy', claimProxy),
    publishStatus: bindStep(deps, process, 'publishStatus', publishStatus),
    releaseProxy: bindStep(deps, process, 'releaseProxy', releaseProxy),
  };
}

/** As `createKubernetesSteps`. */
export function createProviderSteps(deps: StepDeps, process: ProcessHooks): ProviderSteps {
  return {
    resolvePlacement: bindStep(deps, process, 'resolvePlacement', resolvePlacement),
    allocateVmid: bindStep(deps, process, 'allocateVmid', allocateVmid),
    cloneTemplate: bindStep(deps, process, 'cloneTemplate', cloneTemplate),
    uploadSeed: bindStep(deps, process, 'uploadSeed', uploadSeed),
    configureVm: bindStep(deps, process, 'configureVm', configureVm),
    resizeDisk: bindStep(deps, process, 'resizeDisk', resizeDisk),
    startVm: bindStep(deps, process, 'startVm', startVm),
    awaitTask: bindStep(deps, process, 'awaitTask', awaitTask),
    awaitRunning: bindStep(deps, process, 'awaitRunning', awaitRunning),
    pollAgent: bindStep(deps, process, 'pollAgent', pollAgent),
    listManagedVms: bindStep(deps, process, 'listManagedVms', listManagedVms),
    listSeeds: bindStep(deps, process, 'listSeeds', listSeeds),
    stopVm: bindStep(deps, process, 'stopVm', stopVm),
    destroyVm: bindStep(deps, process, 'destroyVm', destroyVm),
    deleteSeed: bindStep(deps, process, 'deleteSeed', deleteSeed),
  };
}

/** As `createKubernetesSteps`; `send` signals the run of a VM's owner, `board` shows what was found. */
export function createCollectionSteps(
  deps: StepDeps,
  process: ProcessHooks,
  { send, board }: { send: SendOrphan; board: OrphanBoard },
): CollectionSteps {
  return {
    signalOrphan: bindStep(deps, process, 'signalOrphan', signalOrphan(send)),
    publishOrphans: bindStep(deps, process, 'publishOrphans', publishOrphans(board)),
  };
}

/** Steps of the `provider` workflow: the check runs where the provider is served, the publication anywhere. */
export function createHealthSteps(deps: HealthDeps, process: ProcessHooks): HealthSteps {
  return {
    checkNode: bindStep(deps, process, 'checkNode', checkNode),
    publishHealth: bindStep(deps, process, 'publishHealth', publishHealth),
  };
}
