/** What the collection of orphans told of a VM: looked at afresh, then put on its way out where it still holds. */
import type { OrphanSignal } from './contract/collection.ts';
import type { VmRecord } from './contract/proxy.ts';
import type { ListManagedVmsResult, ManagedVm } from './contract/removalSteps.ts';
import type { Life } from './life.ts';
import { addEvent, retire, type ProxyState } from './state.ts';
import { listedVm } from './vmRecord.ts';

/** One listing of one provider for all that was told of it. Throws StepFailed. */
export async function collect(life: Life): Promise<void> {
  const { state } = life;
  const provider = state.orphans[0]?.provider ?? '';
  const { vms } = await listOf(life, provider);
  const told = state.orphans.filter((orphan) => orphan.provider === provider);
  state.orphans = state.orphans.filter((orphan) => orphan.provider !== provider);
  for (const orphan of told) {
    const found = vms.find(({ vmid }) => vmid === orphan.vmid) ?? null;
    if (state.objectFound) settleLeftover(state, orphan, found);
    else settleOrphan(state, orphan, found);
  }
}

/** A provider that cannot be listed goes to the end: it may have left for good, and holds up no other. */
async function listOf(life: Life, provider: string): Promise<ListManagedVmsResult> {
  const { state } = life;
  const { ref } = state;
  const summary = `look at the VMs of ${ref.namespace}/${ref.name}`;
  try {
    return await life.step('listManagedVms', { ref, provider }, { provider, summary });
  } catch (error) {
    const isTold = (orphan: OrphanSignal): boolean => orphan.provider === provider;
    const others = state.orphans.filter((orphan) => !isTold(orphan));
    state.orphans = [...others, ...state.orphans.filter(isTold)];
    throw error;
  }
}

/** The VM of a Proxy that exists, given up once: it goes when it is ours and unlocked, and is forgotten when it is gone. */
function settleLeftover(state: ProxyState, orphan: OrphanSignal, found: ManagedVm | null): void {
  const { provider, vmid } = orphan;
  if (!dropLeftover(state, orphan)) return;
  const what = found === null ? 'is gone' : 'is unlocked, so it is removed';
  addEvent(state, 'Normal', 'LeftoverCleared', 'Collect', `leftover VM ${vmid} ${what}`);
  if (found !== null) retire(state, listedVm(provider, found), 'leftover', null);
}

/** Every step of its removal asks Kubernetes once more (design §7). */
function settleOrphan(state: ProxyState, orphan: OrphanSignal, found: ManagedVm | null): void {
  const { provider, vmid } = orphan;
  state.collected = true;
  dropLeftover(state, orphan);
  // A VMID may be taken on two providers, by VMs whose names differ: the provider is part of the spec's hash.
  const known = takeOut(
    state,
    (vm) => vm.vmid === vmid && (vm.provider === provider || vm.name === found?.name),
  );
  if (found === null) return;
  const vm = known ? { ...known, provider } : listedVm(provider, found);
  retire(state, vm, 'orphan', null);
}

/** The record of the VM that is meant, which stands nowhere else from now on. */
function takeOut(state: ProxyState, isMeant: (vm: VmRecord) => boolean): VmRecord | null {
  const { serving, next, removals } = state;
  const removal = removals.find(({ vm }) => isMeant(vm));
  if (removal) state.removals = removals.filter((other) => other !== removal);
  if (next && isMeant(next)) state.next = null;
  if (serving && isMeant(serving)) state.serving = null;
  return [serving, next, removal?.vm].find((vm) => vm && isMeant(vm)) ?? null;
}

function dropLeftover(state: ProxyState, { provider, vmid }: OrphanSignal): boolean {
  const others = state.leftovers.filter((one) => one.vmid !== vmid || one.provider !== provider);
  const dropped = others.length < state.leftovers.length;
  state.leftovers = others;
  return dropped;
}
