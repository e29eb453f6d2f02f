/** The record of a VM: made before its clone, from a listing, or from what a status remembered. Pure. */
import { defaultRequestBoundMs } from './contract/budgets.ts';
import { seedSuffix, type DeletionPolicy, type VmRecord } from './contract/proxy.ts';
import type { ManagedVm } from './contract/removalSteps.ts';
import type { Plan, RecordedStatus, VmRef } from './contract/steps.ts';

const unknownYet = {
  diskKeys: [],
  cloneUpid: null,
  cloneIsOwn: false,
  cloneUnknownAtMs: null,
  seedUpid: null,
  seedUnknownAtMs: null,
  isoStorage: null,
  protectionInherited: false,
  startedAtMs: null,
  markedPolicy: null,
  power: null,
  agent: null,
} as const;

/** A VM about to be made (or just found) for a plan. */
export function plannedVm(
  plan: Plan,
  vmid: number,
  node: string,
  found: { diskKeys: string[]; protectionInherited: boolean } | null,
): VmRecord {
  const { provider, vmName: name, templateVmid, specHash, seedFile, requestBoundMs } = plan;
  return {
    ...unknownYet,
    provider,
    vmid,
    name,
    node,
    templateNode: node,
    templateVmid,
    specHash,
    seedFile,
    requestBoundMs,
    diskKeys: found?.diskKeys ?? [],
    protectionInherited: found?.protectionInherited ?? false,
    seedNodes: [],
    everReady: false,
    ip: null,
  };
}

/** A VM of ours that a listing showed and no record knew. */
export function listedVm(provider: string, found: ManagedVm): VmRecord {
  return pastVm(provider, found.vmid, found.name, found.node, found.specHash);
}

/** The VM that the status of an object with a past speaks of, or null. */
export function rememberedVm(recorded: RecordedStatus): VmRecord | null {
  const { vmid, node, vmName, provider, specHash, everReady, ip } = recorded;
  if (vmid === null || !node || !vmName || !provider || !specHash) return null;
  return { ...pastVm(provider, vmid, vmName, node, specHash), everReady, ip };
}

/** The VM that was being made beside the one that serves, or null: everything about it is looked at afresh. */
export function rememberedReplacement({ replacement }: RecordedStatus): VmRecord | null {
  if (!replacement) return null;
  const { provider, vmid, vmName, node, specHash } = replacement;
  return pastVm(provider, vmid, vmName, node, specHash);
}

function pastVm(
  provider: string,
  vmid: number,
  name: string,
  node: string,
  specHash: string,
): VmRecord {
  return {
    ...unknownYet,
    provider,
    vmid,
    name,
    node,
    templateNode: node,
    templateVmid: 0,
    diskKeys: [],
    specHash,
    seedFile: `${name}${seedSuffix}`,
    seedNodes: [node],
    everReady: false,
    ip: null,
    requestBoundMs: defaultRequestBoundMs,
  };
}

/**
 * A plan for a VM that is there, from its record alone: editing the catalogue must not keep it from being started. What
 * only making a VM needs is left empty.
 */
export function planOf(vm: VmRecord, deletionPolicy: DeletionPolicy): Plan {
  const { provider, vmid, name, node, seedFile, specHash, templateVmid, requestBoundMs } = vm;
  return {
    provider,
    vmName: name,
    seedFile,
    specHash,
    deletionPolicy,
    node,
    image: '',
    machineType: '',
    templateVmid,
    cores: 0,
    memoryMiB: 0,
    diskGiB: null,
    storage: null,
    isoStorage: vm.isoStorage ?? '',
    bridge: null,
    vlanTag: null,
    vmidMin: vmid,
    vmidMax: vmid,
    requestBoundMs,
    abortClones: false,
  };
}

/** What a step needs to find the VM again. */
export function refOf({ provider, vmid, node, name }: VmRecord): VmRef {
  return { provider, vmid, node, name };
}

/** Provider and request bound, for the time limits of a step about this VM. */
export function placeOf(vm: VmRecord): { provider: string; requestBoundMs: number } {
  return { provider: vm.provider, requestBoundMs: vm.requestBoundMs };
}

/** As `placeOf`, before there is a VM. */
export function placeOfPlan(plan: Plan): { provider: string; requestBoundMs: number } {
  return { provider: plan.provider, requestBoundMs: plan.requestBoundMs };
}

/** Every node that ever got the seed; where nothing was uploaded, the node where the VM was. */
export function seedNodesOf(vm: VmRecord): string[] {
  return vm.seedNodes.length > 0 ? vm.seedNodes : [vm.node];
}
