/** What a deletion starts from: a fresh listing of the Proxy's VMs, held against what this run knows. */
import { patched } from '@temporalio/workflow';
import type { DesiredProxy } from './contract/proxy.ts';
import type { ManagedVm } from './contract/removalSteps.ts';
import { StepFailed, type Life } from './life.ts';
import { addEvent, retire, type ProxyState } from './state.ts';
import { sortTwins } from './twins.ts';
import { listedVm } from './vmRecord.ts';

/**
 * The fresh listing a deletion starts from: VMs of this UID that no record of this run knows. Throws StepFailed, also when
 * nobody can tell which of two VMs of one name is ours.
 */
export async function listForDeletion(
  life: Life,
  { provider, deletionPolicy }: DesiredProxy,
): Promise<void> {
  const { state } = life;
  const { namespace, name } = state.ref;
  const { vms } = await life.step(
    'listManagedVms',
    { ref: state.ref, provider, recorded: recordedOn(state, provider) },
    { provider, summary: `list the VMs of ${namespace}/${name}` },
  );
  if (!state.deleting) return;
  const recorded = new Set(state.removals.map(({ vm }) => vm.vmid));
  const { removable, spared, undecided } = sortTwins(vms, recorded);
  const isOther = notGivenUp(state, provider, vms);
  const unclear = undecided.find(isOther);
  if (unclear) {
    const twins = undecided.filter((vm) => vm.name === unclear.name);
    throw undecidedTwins(provider, twins);
  }
  for (const copy of spared.filter(isOther)) tellOfCopy(state, copy);
  // Which of them was the one that served is not known any more, so `Retain` keeps them all.
  const kept = deletionPolicy === 'Retain' && state.everReady;
  for (const found of removable.filter(isOther)) {
    retire(state, listedVm(provider, found), kept ? 'retain' : 'deletion', null);
  }
  state.listedForDeletion = true;
}

/** The VMs that the listing must read. One that was destroyed is proven gone: its VMID may be somebody else's by now. */
function recordedOn({ removals }: ProxyState, provider: string): number[] {
  return removals
    .filter(({ vm, destroyed }) => vm.provider === provider && !destroyed)
    .map(({ vm }) => vm.vmid);
}

/** A VMID this run gave up is no copy, and nothing waits for it (design §5): the result names it, the collection clears it. */
function notGivenUp(
  { leftovers }: ProxyState,
  provider: string,
  found: readonly ManagedVm[],
): (vm: ManagedVm) => boolean {
  const given = leftovers.filter((one) => one.provider === provider).map(({ vmid }) => vmid);
  const isGiven = ({ vmid }: ManagedVm): boolean => given.includes(vmid);
  // Asked only where it matters, so that the history of other runs is as it was.
  const stays = found.some(isGiven) && patched('leftoversStay');
  return (vm) => !stays || !isGiven(vm);
}

function tellOfCopy(state: ProxyState, { vmid, node, name }: ManagedVm): void {
  const message = `VM ${vmid} on ${node} stays: it is a copy of the VM ${name} of this Proxy, made by somebody else; rename it to keep it: alone, it is removed as an orphan`;
  addEvent(state, 'Warning', 'DuplicateVm', 'Delete', message);
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
