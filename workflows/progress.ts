/** What is going on where nothing is in the way, in a sentence. Pure. */
import type { VmRecord } from './contract/proxy.ts';
import type { Removal } from './state.ts';
import { timeOf } from './times.ts';

/** What is going on with a VM that is being made: the waits that last are the clone and the first boot. */
export function making({ vmid, node, templateVmid, cloneUpid, startedAtMs }: VmRecord): string {
  const vm = `VM ${vmid} on ${node}`;
  if (cloneUpid !== null) return `cloning template ${templateVmid} to ${vm} (task ${cloneUpid})`;
  if (startedAtMs === null) return `making ${vm}`;
  return `${vm} has started, waiting for its guest agent to tell the address`;
}

/** What is going on with a VM on its way out; `undefined`: none is known (yet, or any more). */
export function removing(removal: Removal | undefined): string {
  if (!removal) return 'deleting';
  const { vm, destroyed, drainUntilMs } = removal;
  const name = `VM ${vm.vmid} on ${vm.node}`;
  if (destroyed) return `${name} is gone, deleting its seed`;
  const fate = removal.purpose === 'retain' ? 'marked as retained' : 'stopped and destroyed';
  if (drainUntilMs === null) return `${name} is being ${fate}`;
  return `${name} drains until ${timeOf(drainUntilMs)}, then it is ${fate}`;
}
