/** The rows of the matrix: for every step, how a story comes to it and what it asks of the world. */
import type { ProxyRecords } from '../../../activities/kubernetes/records.ts';
import type { ProxyStatus } from '../../../workflows/contract/proxy.ts';
import type { StepName } from '../../../workflows/contract/stepTable.ts';
import type { MatrixStep } from './stepWorker.ts';

/**
 * `life`: created, Ready, deleted. `replacement`: the spec changes in between, so an old VM is removed while its object
 * lives. `forgotten`: the run is lost before the deletion, so another one has to find the VM. `retained`: the VM is to
 * stay. `aborted`: deleted while the clone runs, which may be aborted. `untagged`, `stopped`: somebody took the tag off,
 * or stopped it, while it served.
 */
export type Arc =
  'life' | 'replacement' | 'forgotten' | 'retained' | 'aborted' | 'untagged' | 'stopped';

/** The request by which a step does its work; a fault of Proxmox VE meets that one. */
export interface MainRequest {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  path: RegExp;
  /** It starts a Proxmox task. */
  task: boolean;
  /** The step reads something else before. */
  readsBefore: boolean;
}

export interface Row {
  step: MatrixStep;
  arc: Arc;
  proxmox: MainRequest | null;
  /** The call to Kubernetes that a fault meets. */
  kubernetes: keyof ProxyRecords | null;
  /** Part of a deletion that has begun already. */
  afterDeletion: boolean;
  /** Which of the step's runs the row is about, by their input and the last status. */
  means: (input: unknown, status: ProxyStatus | undefined) => boolean;
}

function row(
  step: MatrixStep,
  proxmox: MainRequest | null,
  fields: Partial<Omit<Row, 'step' | 'proxmox'>> = {},
): Row {
  const usual = { arc: 'life', kubernetes: null, afterDeletion: false, means: () => true } as const;
  return { step, proxmox, ...usual, ...fields };
}

/** The step's first request. */
function asks(path: RegExp): MainRequest {
  return { method: 'GET', path, task: false, readsBefore: false };
}

function asksLater(path: RegExp): MainRequest {
  return { ...asks(path), readsBefore: true };
}

function writes(method: MainRequest['method'], path: RegExp): MainRequest {
  return { method, path, task: false, readsBefore: true };
}

function starts(method: MainRequest['method'], path: RegExp): MainRequest {
  return { ...writes(method, path), task: true };
}

function has(field: string, isMeant: (value: unknown) => boolean): Row['means'] {
  return (input) =>
    typeof input === 'object' && input !== null && isMeant(Reflect.get(input, field));
}

/** Steps that have a second task to do, with a row of its own. */
type SecondTask =
  'configureVm, retaining' | 'configureVm, mending' | 'startVm, again' | 'stopVm, aborting';
export type RowName = MatrixStep | SecondTask;

const isOld = { arc: 'replacement', kubernetes: 'get' } as const;

/** A new step belongs here: the compiler and everyStep.test.ts ask for it. */
export const rows: Record<RowName, Row> = {
  claimProxy: row('claimProxy', null, { kubernetes: 'addFinalizer' }),
  resolvePlacement: row('resolvePlacement', null),
  allocateVmid: row('allocateVmid', asks(/^\/cluster\/resources$/)),
  cloneTemplate: row('cloneTemplate', starts('POST', /\/clone$/)),
  uploadSeed: row('uploadSeed', starts('POST', /\/upload$/), { kubernetes: 'get' }),
  configureVm: row('configureVm', writes('PUT', /\/config$/)),
  resizeDisk: row('resizeDisk', starts('PUT', /\/resize$/)),
  startVm: row('startVm', starts('POST', /\/status\/start$/)),
  awaitTask: row('awaitTask', asks(/\/tasks\/[^/]+\/status$/)),
  awaitRunning: row('awaitRunning', asksLater(/\/status\/current$/)),
  pollAgent: row('pollAgent', asksLater(/\/agent\/network-get-interfaces$/)),
  publishStatus: row('publishStatus', null, { kubernetes: 'publishStatus' }),
  stopVm: row('stopVm', starts('POST', /\/status\/stop$/), isOld),
  destroyVm: row('destroyVm', starts('DELETE', /\/qemu\/\d+$/), isOld),
  deleteSeed: row('deleteSeed', starts('DELETE', /\/content\//), { arc: 'replacement' }),
  releaseProxy: row('releaseProxy', null, { kubernetes: 'removeFinalizer', afterDeletion: true }),
  listManagedVms: row('listManagedVms', asks(/^\/cluster\/resources$/), {
    arc: 'forgotten',
    afterDeletion: true,
  }),
  'configureVm, retaining': row('configureVm', writes('PUT', /\/config$/), {
    arc: 'retained',
    afterDeletion: true,
    means: has('kind', (kind) => kind === 'mark'),
  }),
  'configureVm, mending': row('configureVm', writes('PUT', /\/config$/), {
    arc: 'untagged',
    means: has('kind', (kind) => kind === 'mend'),
  }),
  'startVm, again': row('startVm', starts('POST', /\/status\/start$/), {
    arc: 'stopped',
    means: (_input, status) => status?.everReady === true,
  }),
  'stopVm, aborting': row('stopVm', writes('DELETE', /\/tasks\/[^/]+$/), {
    arc: 'aborted',
    kubernetes: 'get',
    afterDeletion: true,
    means: has('ownClone', (upid) => upid !== null),
  }),
};

/** Steps without a row, and why. */
export const leftOut: Partial<Record<StepName, string>> = {
  listSeeds: 'no step of a Proxy: it changes nothing, tested in steps/listSeeds.test.ts',
  signalOrphan: 'no step of a Proxy: a signal, tested in steps/collections.test.ts',
  publishOrphans:
    'no step of a Proxy: it writes ProviderHealth, tested in steps/collections.test.ts',
  probeProxies:
    'no step of a Proxy: one long watcher of its own workflow, tested in steps/probeProxies.test.ts',
  watchVms:
    'no step of a Proxy: one long watcher of its provider, tested in steps/watchVms.test.ts',
  checkNode: 'no step of a Proxy: it changes nothing, tested in steps/checkNode.test.ts',
  publishHealth:
    'no step of a Proxy: it writes ProviderHealth, tested in steps/publishHealth.test.ts',
};
