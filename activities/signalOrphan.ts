/** Tells the run of a VM's owner that the VM may have to go: what happens to a Proxy's VMs happens in its one run. */
import type { ProxyRef } from '../workflows/contract/proxy.ts';
import type { OrphanSignal, SignalOrphanInput } from '../workflows/contract/collection.ts';
import type { Step } from './deps.ts';

/** Signals `orphan`, starting the run where there is none. Throws what Temporal's client throws. */
export type SendOrphan = (owner: ProxyRef, orphan: OrphanSignal) => Promise<void>;

/** The step over a way to signal; the run looks for itself, so a second signal does no harm. */
export function signalOrphan(send: SendOrphan): Step<SignalOrphanInput, void> {
  return async (_deps, context, { owner, provider, vmid }) => {
    await send(owner, { provider, vmid });
    const { namespace, name, uid } = owner;
    context.log.info({ provider, vmid, proxy: `${namespace}/${name}`, uid }, 'orphan signalled');
  };
}
