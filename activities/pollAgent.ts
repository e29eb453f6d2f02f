/** One look at the guest agent for the VM's address. Not there yet is said by `NotYet`: the poll is a retry. */
import type { Step, StepContext, StepDeps } from './deps.ts';
import { askAgent } from './facts/agent.ts';
import { findOurVm, statusFields, vmAt, type OurVm } from './facts/vms.ts';
import { NotYet, transient } from './providerError.ts';
import { chooseAddress } from './vm/address.ts';
import { agentIsEnabled, netMac } from './vm/hardware.ts';
import { parseMark } from './vm/identity.ts';
import { hasProcess } from './vm/state.ts';
import { waitBudgets } from '../workflows/contract/budgets.ts';
import type { PollAgentInput, PollAgentResult } from '../workflows/contract/steps.ts';

/**
 * Throws NotYet while the guest boots; Transient `AgentSilent` when its agent is off or 10 minutes have passed since
 * the first poll, `AddressAmbiguous`, and `VmStopped` (goBack).
 */
export const pollAgent: Step<PollAgentInput, PollAgentResult> = async (deps, context, input) => {
  const { ref, plan, vm } = input;
  const api = deps.providers.api(plan.provider, context.call);
  const found = await findOurVm(deps, api, ref, vm);
  const { vmid, node } = found;
  if (!hasProcess(found.power)) {
    const message = `${vmAt(found)} stopped before it had an address; starting it again`;
    throw transient('VmStopped', message, { vmid, node, goBack: true });
  }
  requireAgent(found);
  const answer = await askAgent(deps, context.call.signal, api, plan.provider, found, () => {
    context.heartbeat();
  });
  if (answer === null) {
    throw notYet(deps, context, input, found, 'its guest agent does not answer yet');
  }
  context.log.trace({ interfaces: answer }, 'proxmox guest agent answered');
  const policy = deps.providers.config(plan.provider).proxmox.address;
  const mac = netMac(found.config.values.net0 ?? '');
  const choice = chooseAddress(answer, mac, policy, input.previous ?? null);
  if (choice.kind === 'ambiguous') throw ambiguous(found, mac, choice.candidates);
  if (choice.kind === 'none') {
    throw notYet(deps, context, input, found, 'the guest has no usable address yet');
  }
  const uid = parseMark(found.config.values.description ?? '')?.uid;
  const fetched = { ip: choice.ip, node, uid, ...statusFields(found) };
  context.log.debug(fetched, 'proxmox vm fetched');
  return { ip: choice.ip, node };
};

/** Enabling it later helps only after a stop and a start (api-facts 5.22). */
function requireAgent(vm: OurVm): void {
  const { vmid, node } = vm;
  if (agentIsEnabled(vm.config.values.agent)) return;
  const remedy = `qm set ${vmid} --agent 1, then stop and start the VM`;
  throw transient(
    'AgentSilent',
    `${vmAt(vm)} has no guest agent configured, so its address stays unknown; ${remedy}`,
    { vmid, node, remedy },
  );
}

function notYet(
  deps: StepDeps,
  context: StepContext,
  { once }: PollAgentInput,
  vm: OurVm,
  why: string,
): Error {
  const waitedMs = deps.clock.now() - context.scheduledAtMs;
  if (once !== true && waitedMs < waitBudgets.agent * deps.pace.budgetScale) {
    return new NotYet(`${vmAt(vm)}: ${why}`, deps.pace.agentMs);
  }
  const { vmid, node } = vm;
  const remedy =
    `on the guest (qm terminal ${vmid} on ${node}) look at systemctl status qemu-guest-agent and ` +
    '/var/log/cloud-init-output.log; its network needs DHCP and, unless the template has the agent, the internet';
  const since = once === true ? '' : `, ${waitBudgets.agent / 60_000} min after it began to run`;
  return transient('AgentSilent', `${vmAt(vm)}: ${why}${since}; ${remedy}`, { vmid, node, remedy });
}

function ambiguous(vm: OurVm, mac: string | null, candidates: readonly string[]): Error {
  const { vmid, node } = vm;
  const remedy = 'narrow it down with proxmox.address.cidrs';
  return transient(
    'AddressAmbiguous',
    `${vmAt(vm)} reports ${someOf(candidates)} and none of them on net0 (${mac ?? 'no MAC'}); ${remedy}`,
    { vmid, node, remedy },
  );
}

/** A guest may report thousands, and statuses have their limits. */
function someOf(addresses: readonly string[]): string {
  const shown = addresses.slice(0, 10).join(', ');
  return addresses.length > 10 ? `${shown} and ${addresses.length - 10} more` : shown;
}
