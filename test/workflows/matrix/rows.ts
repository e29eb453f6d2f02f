/** The rows of the matrix: for every step, how a story comes to it and what it asks of the world. */
import type { ProxyRecords } from '../../../activities/kubernetes/records.ts';
import type { StepName } from '../../../workflows/contract/steps.ts';
import type { MatrixStep } from './stepWorker.ts';

/**
 * `life`: created, Ready, deleted. `replacement`: the spec changes in between, so an old VM is removed while its object
 * lives. `forgotten`: the run is lost before the deletion, so another one has to find the VM.
 */
export type Arc = 'life' | 'replacement' | 'forgotten';

/** The request by which a step does its work; a fault of Proxmox VE meets that one. */
export interface MainRequest {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  path: RegExp;
  /** It starts a Proxmox task. */
  task: boolean;
}

export interface Row {
  arc: Arc;
  proxmox: MainRequest | null;
  /** The call to Kubernetes that a fault meets. */
  kubernetes: keyof ProxyRecords | null;
  /** Part of a deletion that has begun already. */
  afterDeletion: boolean;
}

function row(
  arc: Arc,
  proxmox: MainRequest | null,
  kubernetes: keyof ProxyRecords | null = null,
  afterDeletion = false,
): Row {
  return { arc, proxmox, kubernetes, afterDeletion };
}

function asks(path: RegExp): MainRequest {
  return { method: 'GET', path, task: false };
}

function starts(method: MainRequest['method'], path: RegExp): MainRequest {
  return { method, path, task: true };
}

/** A new step belongs here: the compiler and everyStep.test.ts ask for it. */
export const rows: Record<MatrixStep, Row> = {
  claimProxy: row('life', null, 'addFinalizer'),
  resolvePlacement: row('life', null),
  allocateVmid: row('life', asks(/^\/cluster\/resources$/)),
  cloneTemplate: row('life', starts('POST', /\/clone$/)),
  uploadSeed: row('life', starts('POST', /\/upload$/), 'get'),
  configureVm: row('life', { method: 'PUT', path: /\/config$/, task: false }),
  resizeDisk: row('life', starts('PUT', /\/resize$/)),
  startVm: row('life', starts('POST', /\/status\/start$/)),
  awaitTask: row('life', asks(/\/tasks\/[^/]+\/status$/)),
  awaitRunning: row('life', asks(/\/status\/current$/)),
  pollAgent: row('life', asks(/\/agent\/network-get-interfaces$/)),
  publishStatus: row('life', null, 'publishStatus'),
  stopVm: row('replacement', starts('POST', /\/status\/stop$/), 'get'),
  destroyVm: row('replacement', starts('DELETE', /\/qemu\/\d+$/), 'get'),
  deleteSeed: row('replacement', starts('DELETE', /\/content\//)),
  releaseProxy: row('life', null, 'removeFinalizer', true),
  listManagedVms: row('forgotten', asks(/^\/cluster\/resources$/), null, true),
};

/** Steps without a row, and why. */
export const leftOut: Partial<Record<StepName, string>> = {
  listSeeds: 'no step of a Proxy: it changes nothing, tested in steps/listSeeds.test.ts',
  signalOrphan: 'no step of a Proxy: a signal, tested in steps/collections.test.ts',
  publishOrphans:
    'no step of a Proxy: it writes ProviderHealth, tested in steps/collections.test.ts',
  probeProxies:
    'no step of a Proxy: one long watcher of its own workflow, tested in steps/probeProxies.test.ts',
  checkNode: 'no step of a Proxy: it changes nothing, tested in steps/checkNode.test.ts',
  publishHealth:
    'no step of a Proxy: it writes ProviderHealth, tested in steps/publishHealth.test.ts',
};
