/** Does Kubernetes still want this VM gone? Read again right before anything is destroyed (design §3). */
import type { StepDeps } from '../deps.ts';
import { transient } from '../providerError.ts';
import type { StopVmInput } from '../../workflows/contract/removalSteps.ts';
import { wantedSpec } from './wantedSpec.ts';

/**
 * Throws Transient unless the purpose holds: a deletion needs an object under deletion (or gone since), a replacement a wanted spec
 * that is not this VM's, an orphan no object at all. `incomplete` and `leftover` are made right by destroying, so
 * they need no more than the VM's own identity.
 */
export async function confirmPurpose(deps: StepDeps, input: StopVmInput): Promise<void> {
  switch (input.purpose) {
    case 'deletion':
      return confirmDeletion(deps, input);
    case 'replacement':
      return confirmReplacement(deps, input);
    case 'orphan':
      return confirmOrphan(deps, input);
    case 'incomplete':
    case 'leftover':
      return;
  }
}

async function confirmDeletion(deps: StepDeps, input: StopVmInput): Promise<void> {
  const proxy = await deps.kubernetes.get(input.ref);
  // Its finalizer was taken off by hand: the run that asks has seen the deletion, or it would not ask for one.
  if (proxy === null) return;
  if (proxy.metadata.deletionTimestamp === undefined) {
    throw refused(input, 'the Proxy is not being deleted');
  }
}

async function confirmReplacement(deps: StepDeps, input: StopVmInput): Promise<void> {
  const proxy = await deps.kubernetes.get(input.ref);
  if (proxy === null) throw objectMissing(input);
  if (proxy.metadata.deletionTimestamp !== undefined) return;
  const { specHash } = await wantedSpec(deps, proxy);
  if (specHash === input.specHash) throw refused(input, 'the wanted spec is its own again');
}

async function confirmOrphan(deps: StepDeps, input: StopVmInput): Promise<void> {
  // By UID among all: the name in a mark is for people, and may be anything.
  const { proxies } = await deps.survey();
  const uid = input.ref.uid.toLowerCase();
  if (proxies.some(({ ref }) => ref.uid.toLowerCase() === uid)) {
    throw refused(input, 'its Proxy exists');
  }
}

/** A missing object without a deletion is a lost or rolled back cluster as likely as a wish (design §5). */
function objectMissing({ ref, vm }: StopVmInput): Error {
  return transient(
    'ObjectMissing',
    `Proxy ${ref.namespace}/${ref.name} (UID ${ref.uid}) is not there; VM ${vm.vmid} is kept`,
    { vmid: vm.vmid, goBack: true },
  );
}

function refused({ vm }: StopVmInput, why: string): Error {
  return transient('StillWanted', `VM ${vm.vmid} (${vm.name}) is kept: ${why}`, {
    vmid: vm.vmid,
    goBack: true,
  });
}
