/** The status of a Proxy as a function of its workflow's state: the only place where phases are decided. */
import { proxyWorkflowId } from './contract/messages.ts';
import { providerIdFor, type Phase, type ProxyStatus, type Replacement } from './contract/proxy.ts';
import { conditionsOf, messageOfConflict, messageOfPause } from './conditions.ts';
import { making, removing } from './progress.ts';
import type { ProxyState } from './state.ts';
import { addressOf, healthyOf, isVmGone, shownHealth, shownTrouble, shownVm } from './view.ts';

/** Deletion first, then what serves, only then what is in the way: while a VM serves, a Proxy is never `Failed` (design §2). */
export function phaseOf(state: ProxyState): Phase {
  if (state.deleting) return 'Deleting';
  if (addressOf(state) !== null) {
    return healthyOf(state) && state.addressHeldBy === null ? 'Ready' : 'Running';
  }
  if (!state.serving && state.trouble?.errorClass === 'Permanent') return 'Failed';
  return state.next || state.serving ? 'Provisioning' : 'Pending';
}

/** Our whole part of the status; fields and conditions of others are not in it and stay. */
export function statusOf(state: ProxyState): ProxyStatus {
  const vm = shownVm(state);
  return {
    phase: phaseOf(state),
    ip: addressOf(state),
    healthy: addressOf(state) === null ? null : healthyOf(state),
    provider: vm?.provider ?? null,
    providerID: vm ? providerIdFor(vm.vmid, vm.name) : null,
    vmid: vm?.vmid ?? null,
    node: vm?.node ?? null,
    power: isVmGone(state) ? null : (vm?.power ?? null),
    vmName: vm?.name ?? null,
    workflowID: proxyWorkflowId(state.ref.uid),
    specHash: vm?.specHash ?? null,
    desiredSpecHash: state.desired?.specHash ?? null,
    observedGeneration: state.desired?.generation ?? 0,
    message: messageOf(state),
    handled: state.handled,
    everReady: state.everReady,
    leftovers: state.leftovers,
    replacement: replacementOf(state),
    timings: state.timings,
    conditions: conditionsOf(state),
  };
}

function replacementOf(state: ProxyState): Replacement | null {
  const { serving, next } = state;
  if (!serving || !next) return null;
  const { provider, vmid, node, name, ip, specHash } = next;
  return { provider, vmid, node, vmName: name, ip, specHash };
}

/** One sentence: what stands in the way and how it is mended, else what is going on. */
export function messageOf(state: ProxyState): string {
  const trouble = shownTrouble(state);
  if (trouble) {
    const remedy = trouble.remedy ? ` — ${trouble.remedy}` : '';
    return `${trouble.step}: ${trouble.message}${remedy}`;
  }
  if (state.desired?.paused) return messageOfPause(state);
  if (state.deleting) return removing(state.removals[0]);
  if (state.addressHeldBy !== null) return messageOfConflict(state);
  const health = shownHealth(state);
  if (health && !health.healthy) return `probe: ${health.message}`;
  if (addressOf(state) !== null)
    return health ? '' : 'waiting for the first probe through the proxy';
  return state.next ? making(state.next) : '';
}
