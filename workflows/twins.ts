/** Several VMs of one name: a backup that was restored beside its original has the same name and mark (design §3). Pure. */
import type { ManagedVm } from './contract/removalSteps.ts';

/** Which of the VMs a deletion finds may go. */
export interface Sorted {
  removable: ManagedVm[];
  /** Copies of a VM that this run recorded before it was cloned: not ours to remove. */
  spared: ManagedVm[];
  /** Of one name, and none of them recorded: nobody can tell which is the Proxy's. */
  undecided: ManagedVm[];
}

/** `recorded`: VMIDs that this run recorded. A VM alone under its name may go, whoever remembers it. */
export function sortTwins(found: readonly ManagedVm[], recorded: ReadonlySet<number>): Sorted {
  const sorted: Sorted = { removable: [], spared: [], undecided: [] };
  for (const vm of found) {
    const twins = found.filter(({ name, vmid }) => name === vm.name && vmid !== vm.vmid);
    if (recorded.has(vm.vmid) || twins.length === 0) sorted.removable.push(vm);
    else if (twins.some(({ vmid }) => recorded.has(vmid))) sorted.spared.push(vm);
    else sorted.undecided.push(vm);
  }
  return sorted;
}
