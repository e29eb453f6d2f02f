/** The status of a Proxy as a function of its workflow's state: the only place where phases are decided. */
import { proxyWorkflowId } from './contract/messages.ts';
import type { Phase, ProxyStatus, Replacement, VmRecord } from './contract/proxy.ts';
import { conditionsOf, messageOfConflict, messageOfPause } from './conditions.ts';
import type { ProxyState, Removal } from './state.ts';
import { addressOf, healthyOf, shownHealth, shownTrouble, shownVm } from './view.ts';

export function phaseOf(state: ProxyState): Phase {
  if (state.deleting) return 'Deleting';
  if (addressOf(state) !== null) {
    return healthyOf(state) && state.addressHeldBy === null ? 'Ready' : 'Running';
  }
  if (!state.serving && state.trouble?.errorClass === 'Permanent') return 'Failed';
  return state.next || state.serving ? 'Provisioning' : 'Pending';
}

export function statusOf(state: ProxyState): ProxyStatus {
  const vm = shownVm(state);
  return {
    phase: phaseOf(state),
    ip: addressOf(state),
    healthy: addressOf(state) === null ? null : healthyOf(state),
    provider: vm?.provider ?? null,
    providerID: vm ? `vms/${vm.vmid}/${vm.name}` : null,
    vmid: vm?.vmid ?? null,
    node: vm?.node ?? null,
    power: vm?.power ?? null,
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
  const { vmid, node, name, ip, specHash } = next;
  return { vmid, node, vmName: name, ip, specHash };
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

/** The waits of a line that last: the clone, and the first boot. */
function making({ vmid, node, templateVmid, cloneUpid, startedAtMs }: VmRecord): string {
  const vm = `VM ${vmid} on ${node}`;
  if (cloneUpid !== null) return `cloning template ${templateVmid} to ${vm} (task ${cloneUpid})`;
  if (startedAtMs === null) return `making ${vm}`;
  return `${vm} has started, waiting for its guest agent to tell the address`;
}

function removing(removal: Removal | undefined): string {
  if (!removal) return 'deleting';
  const { vm, destroyed, drainUntilMs } = removal;
  const name = `VM ${vm.vmid} on ${vm.node}`;
  if (destroyed) return `${name} is gone, deleting its seed`;
  const fate = removal.purpose === 'retain' ? 'marked as retained' : 'stopped and destroyed';
  if (drainUntilMs === null) return `${name} is being ${fate}`;
  return `${name} drains until ${new Date(drainUntilMs).toISOString()}, then it is ${fate}`;
}
