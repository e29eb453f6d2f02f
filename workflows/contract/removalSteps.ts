/** Inputs and results of the steps that find VMs and take them away. */
import type { Census } from './collection.ts';
import type { ProxyRef } from './proxy.ts';
import type { VmRef } from './steps.ts';

/** Why a VM is to be destroyed; decides what the step must read again right before (design §3). */
export type DestroyPurpose = 'deletion' | 'replacement' | 'incomplete' | 'leftover' | 'orphan';

export interface StopVmInput {
  ref: ProxyRef;
  vm: VmRef;
  purpose: DestroyPurpose;
  specHash: string;
  /** The VM's ide2 never named our seed, so `protection` was inherited from the template. */
  protectionInherited: boolean;
  /** UPID of a clone to this VM that our own request started and whose end nobody has seen. */
  ownClone: string | null;
}
/**
 * `gone`: no VM of ours is there (proven). `stopped`: it may be destroyed now. `task`: wait, then ask again.
 * `aborted`: its clone was told to end; wait for that, then ask again.
 */
export type StopVmResult =
  | { kind: 'gone' }
  | { kind: 'aborted' }
  | { kind: 'stopped'; node: string }
  | { kind: 'task'; node: string; upid: string };
export type DestroyVmInput = StopVmInput;
export type DestroyVmResult = { kind: 'gone' } | { kind: 'task'; node: string; upid: string };

export interface DeleteSeedInput {
  /** `null`: its Proxy is known by the name of the seed only. */
  ref: ProxyRef | null;
  provider: string;
  vmName: string;
  seedFile: string;
  node: string;
  /** VMID the seed was made for; the VM there may have been renamed since. `null`: not known. */
  vmid: number | null;
  /** Storage it was uploaded to; `null`: the one the provider has now. */
  isoStorage: string | null;
  /** It goes only while no Proxy of its UID exists, which is asked right before. */
  orphan?: boolean;
}
/** `alsoOn`: other nodes that list it, as far as they answer. */
export type DeleteSeedResult = { kind: 'gone'; alsoOn?: string[] } | { kind: 'task'; upid: string };

export interface ListManagedVmsInput {
  /** `null`: all VMs of ours on the provider, held against all Proxies. */
  ref: ProxyRef | null;
  provider: string;
  /** VMIDs of this provider that the run recorded; while one of them cannot be read, no listing is complete. */
  recorded?: number[];
}
/** A VM that is provably ours and of this Proxy's UID (design §3), whatever spec it was made for. */
export interface ManagedVm {
  vmid: number;
  node: string;
  name: string;
  specHash: string;
}
export interface ListManagedVmsResult {
  /** Of that one Proxy; empty without one. */
  vms: ManagedVm[];
  /** Only without a `ref`. */
  census: Census | null;
}
