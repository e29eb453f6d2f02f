/** Asking a VM's guest agent, the same way for whoever asks. */
import type { StepDeps } from '../deps.ts';
import { ProviderError } from '../providerError.ts';
import type { AgentInterface, ProxmoxApi } from '../proxmox/api.ts';
import { exclusively } from './exclusive.ts';

/**
 * One at a time per node: eight at once slow every other call (design §7). `null`: the agent does not answer. `whenDue` runs
 * right before the request.
 */
export function askAgent(
  { providers }: Pick<StepDeps, 'providers'>,
  signal: AbortSignal,
  api: ProxmoxApi,
  provider: string,
  { node, vmid }: { node: string; vmid: number },
  whenDue: () => void = () => undefined,
): Promise<AgentInterface[] | null> {
  return exclusively(providers, `agent ${provider}/${node}`, signal, async () => {
    whenDue();
    try {
      return await api.getAgentInterfaces(node, vmid);
    } catch (error) {
      if (error instanceof ProviderError && error.facts.reason === 'AgentSilent') return null;
      throw error;
    }
  });
}
