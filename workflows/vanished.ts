/** What becomes of a Proxy whose VM is gone, or held for good by a lock. Pure changes of state. */
import { providerRetryMs, repeatMemoryMs, repeatRetryMs } from './contract/budgets.ts';
import type { DesiredProxy, VmRecord } from './contract/proxy.ts';
import type { AllocateVmidResult } from './contract/steps.ts';
import { addEvent, forgetHealth, retire, type ProxyState, type Trouble } from './state.ts';
import { latchedTrouble } from './trouble.ts';
import { healthyOf } from './view.ts';

type Stuck = Extract<AllocateVmidResult, { kind: 'stuck' }>;

/** It is made (again) from its start: no address, nothing known of its power. */
export function forget(vm: VmRecord): void {
  Object.assign(vm, {
    ip: null,
    everReady: false,
    startedAtMs: null,
    cloneUpid: null,
    power: null,
    agent: null,
  });
}

/**
 * Proven gone. The VM that is wanted is made again, ever more slowly when that repeats; one that was to be replaced
 * anyway is not (design §5), and its seed goes.
 */
export function noteVanished(
  state: ProxyState,
  desired: DesiredProxy,
  vm: VmRecord,
  nowMs: number,
): void {
  const message = `VM ${vm.vmid} (${vm.name}) is gone from Proxmox`;
  addEvent(state, 'Warning', 'VmVanished', 'Repair', message);
  forgetHealth(state, vm.ip);
  if (vm !== state.serving) return forget(vm);
  state.serving = null;
  state.addressHeldBy = null;
  if (vm.specHash !== desired.specHash) return retire(state, vm, 'replacement', null);
  // Made for a spec that is not wanted any more: nobody has discarded it yet.
  if (state.next) retire(state, state.next, 'replacement', null);
  // The record stays: its seed may still be where it was put.
  forget(vm);
  state.next = vm;
  state.vanishings = [...state.vanishings.filter((at) => at > nowMs - repeatMemoryMs), nowMs];
  const waitMs = repeatRetryMs(state.vanishings.length);
  if (waitMs === 0) return;
  const again = `${message}, the ${state.vanishings.length}. time within an hour; made again in ${waitMs / 60_000} min`;
  const remedy = 'find out who removes it';
  state.trouble = {
    ...latchedTrouble(null, 'VmVanished', again, remedy, nowMs),
    nextAtMs: nowMs + waitMs,
  };
}

/**
 * A lock that no token can clear. A VM that serves all the same is left as it is; otherwise its VMID is left to a
 * person, and the line goes on with the next one.
 */
export function giveUpStuck(
  state: ProxyState,
  vm: VmRecord,
  { vmid, node, lock, remedy }: Stuck,
  nowMs: number,
): Trouble | null {
  const reason = `VM ${vmid} on ${node} is locked (${lock}) for good`;
  const serves = vm === state.serving && healthyOf(state) === true;
  if (serves || state.leftovers.length > 0) {
    const trouble = latchedTrouble(state.repairTrouble, 'VmLeftover', reason, remedy, nowMs);
    // No row tells that a lock is gone while the VM runs.
    return { ...trouble, nextAtMs: nowMs + providerRetryMs };
  }
  const { provider, cloneUpid } = vm;
  const why = `locked (${lock}); ${remedy}`;
  state.leftovers.push({ provider, vmid, node, upid: cloneUpid ?? '', reason: why });
  addEvent(state, 'Warning', 'VmLeftover', 'Repair', `${reason}; ${remedy}`);
  forgetHealth(state, vm.ip);
  if (vm === state.serving) state.serving = null;
  else state.next = null;
  return null;
}
