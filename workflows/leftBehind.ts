/** What stays on Proxmox when a run ends, as its result and the Event of a forced deletion tell it. Pure. */
import type { ProxyWorkflowResult } from './contract/messages.ts';
import type { ProxyEvent, VmRecord } from './contract/proxy.ts';
import type { ProxyState, Removal } from './state.ts';
import { seedNodesOf } from './vmRecord.ts';

type Left = ProxyWorkflowResult['left'][number];

/** Every VM and seed this run knows and has not seen go, and its leftovers. */
export function leftBehind(state: ProxyState): Left[] {
  const { serving, next, removals, leftovers } = state;
  const known = [serving, next]
    .filter((vm) => vm !== null)
    .map((vm) => leftVm(state, vm, retainRemedy(state, vm)));
  const leaving = removals.flatMap((removal) => leftOf(state, removal));
  // A leftover never got a seed of its own: its clone did not end.
  const given = leftovers.map(({ provider, vmid, node, upid }) => ({
    provider,
    vmid,
    node,
    upid: upid === '' ? null : upid,
    seedFile: null,
  }));
  return [...known, ...leaving, ...given];
}

/** The Event of a deletion that did not wait for Proxmox. */
export function forcedEvent(state: ProxyState): ProxyEvent {
  const left = leftBehind(state).map(sentenceOf).join('; ');
  const message =
    left === '' ? 'force delete: nothing was left behind' : `force delete left behind: ${left}`;
  return { type: 'Warning', reason: 'ForceDeleted', action: 'ForceDelete', message };
}

function sentenceOf({ vmid, node, upid, seedFile, remedy }: Left): string {
  const seed = seedFile === null ? '' : `seed ${seedFile}`;
  const what =
    vmid === null ? `${seed} on ${node}` : `VM ${vmid} on ${node}${seed === '' ? '' : `, ${seed}`}`;
  return `${what}${upid ? `, task ${upid}` : ''}${remedy === undefined ? '' : ` (${remedy})`}`;
}

/** A VM that was destroyed may be somebody else's by now, so only its seeds are named, where they are not proven gone. */
function leftOf(state: ProxyState, removal: Removal): Left[] {
  const { vm, purpose, destroyed, seedGoneFrom } = removal;
  if (!destroyed) {
    const mayStay = purpose === 'retain' || purpose === 'deletion';
    return [leftVm(state, vm, mayStay ? retainRemedy(state, vm) : null)];
  }
  const { provider, seedFile } = vm;
  return seedNodesOf(vm)
    .filter((node) => !seedGoneFrom.includes(node))
    .map((node) => ({ provider, vmid: null, node, upid: state.upid, seedFile }));
}

function leftVm(state: ProxyState, vm: VmRecord, remedy: string | null): Left {
  const { provider, vmid, node, cloneUpid, seedFile } = vm;
  const upid = state.upid ?? cloneUpid;
  return { provider, vmid, node, upid, seedFile, ...(remedy === null ? {} : { remedy }) };
}

/** `Retain` keeps a VM from the collection only once its mark says so; protection keeps it, too (design §7). */
function retainRemedy({ desired }: ProxyState, vm: VmRecord): string | null {
  const { everReady, markedPolicy, vmid } = vm;
  if (desired?.deletionPolicy !== 'Retain' || !everReady || markedPolicy === 'Retain') return null;
  const what =
    markedPolicy === null
      ? 'its mark may not say Retain yet, so the collection may remove it'
      : 'its mark does not say Retain yet, so the collection will remove it';
  return `${what}; to keep it: qm set ${vmid} --protection 1`;
}
