/** The check of the host, as the operator makes it for ProviderHealth. Creates nothing. */
import { checkNode } from '../../activities/checkNode.ts';
import { UserError } from '../../deploy/dev/program.ts';
import type { Host } from './host.ts';
import { providerName } from './settings.ts';

/** Throws `UserError` with reason and remedy for the first node that is not ready. */
export async function checkHost(host: Host): Promise<void> {
  for (const node of host.deps.providers.config(providerName).proxmox.nodes) {
    const { target } = await host.run(checkNode, { provider: providerName, node });
    if (target === null) throw new UserError(`${node} is not a node of the config`);
    const details = Object.entries(target.details).map(([key, value]) => `${key} ${value}`);
    host.log(`${node}: ${target.reason} in ${target.latencyMs ?? '?'} ms; ${details.join(', ')}`);
    if (!target.ready)
      throw new UserError(`${node} is not ready: ${target.reason}: ${target.message}`);
  }
}
