/** What a deletion starts from: a fresh listing of the Proxy's VMs, held against what this run knows. */
import type { DesiredProxy } from './contract/proxy.ts';
import type { ManagedVm } from './contract/removalSteps.ts';
import { StepFailed, type Life } from './life.ts';
import { addEvent, retire } from './state.ts';
import { sortTwins } from './twins.ts';
import { listedVm } from './vmRecord.ts';

/** The fresh listing a deletion starts from: VMs of this UID that no record of this run knows. */
export async function listForDeletion(
  life: Life,
  { provider, deletionPolicy }: DesiredProxy,
): Promise<void> {
  const { state } = life;
  const { vms } = await life.step(
    'listManagedVms',
    { ref: state.ref, provider },
    { provider, summary: `list the VMs of ${state.ref.namespace}/${state.ref.name}` },
  );
  if (!state.deleting) return;
  const recorded = new Set(state.removals.map(({ vm }) => vm.vmid));
  const { removable, spared, undecided } = sortTwins(vms, recorded);
  if (undecided.length > 0) throw undecidedTwins(provider, undecided);
  for (const { vmid, node, name } of spared) {
    const message = `VM ${vmid} on ${node} stays: it is a copy of the VM ${name} of this Proxy, made by somebody else`;
    addEvent(state, 'Warning', 'DuplicateVm', 'Delete', message);
  }
  // Which of them was the one that served is not known any more, so `Retain` keeps them all.
  const kept = deletionPolicy === 'Retain' && state.everReady;
  for (const found of removable) {
    retire(state, listedVm(provider, found), kept ? 'retain' : 'deletion', null);
  }
  state.listedForDeletion = true;
}

/** The deletion waits, and tries again slowly, until a person has removed or renamed all but one. */
function undecidedTwins(provider: string, twins: readonly ManagedVm[]): StepFailed {
  const [{ vmid, node, name } = { vmid: 0, node: '', name: '' }] = twins;
  const listed = twins.map((vm) => `${vm.vmid} on ${vm.node}`).join(', ');
  const remedy = `remove or rename all but one of them: ${twins.map((vm) => `qm destroy ${vm.vmid}`).join(' or ')}`;
  return new StepFailed('listManagedVms', {
    kind: 'failed',
    errorClass: 'Permanent',
    message: `${twins.length} VMs are named ${name} (${listed}), and it is not certain which of them is this Proxy's; ${remedy}`,
    facts: { reason: 'DuplicateVm', scope: 'proxy', provider, vmid, node, remedy },
  });
}
