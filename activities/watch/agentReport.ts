/** One look at what a guest says about its address, for the comparison with the status. */
import type { StepContext, StepDeps } from '../deps.ts';
import { askAgent } from '../facts/agent.ts';
import { chooseAddress } from '../vm/address.ts';
import { agentIsEnabled, netMac } from '../vm/hardware.ts';
import type { WatchedVm } from './watched.ts';

export type AgentReport =
  | { kind: 'address'; ip: string }
  | { kind: 'ambiguous' }
  /** No answer, or nothing usable in it. */
  | { kind: 'silent' }
  /** The option is off in the VM's config. */
  | { kind: 'off' }
  /** The VMID is another VM's by now. */
  | { kind: 'anotherVm' };

/** Two requests. Throws ProviderError when Proxmox itself does not answer. */
export async function readAgent(
  deps: StepDeps,
  context: StepContext,
  provider: string,
  vm: Pick<WatchedVm, 'node' | 'vmid' | 'name' | 'ip'>,
): Promise<AgentReport> {
  const api = deps.providers.api(provider, context.call);
  const { values } = await api.getVmConfig(vm.node, vm.vmid);
  if (values.name !== vm.name) return { kind: 'anotherVm' };
  if (!agentIsEnabled(values.agent)) return { kind: 'off' };
  const answer = await askAgent(deps, context.call.signal, api, provider, vm);
  if (answer === null) return { kind: 'silent' };
  const policy = deps.providers.config(provider).proxmox.address;
  const choice = chooseAddress(answer, netMac(values.net0 ?? ''), policy, vm.ip);
  if (choice.kind === 'address') return choice;
  return { kind: choice.kind === 'none' ? 'silent' : 'ambiguous' };
}
