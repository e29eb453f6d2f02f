/** Taking a VM away: stop → destroy → seed. Each answer is proven by a fresh look of the next step. */
import { patched } from '@temporalio/workflow';
import { isUnserved } from './contract/errors.ts';
import type { VmRecord } from './contract/proxy.ts';
import type { DestroyPurpose, StopVmInput } from './contract/removalSteps.ts';
import { cloneIsOpen, closeClone, openForMs } from './clone.ts';
import { awaitTask, isTaskEnd, write } from './finished.ts';
import { StepFailed, type Life } from './life.ts';
import { awaitUpload } from './provision.ts';
import { addEvent, type Removal } from './state.ts';
import { placeOf, refOf, seedNodesOf } from './vmRecord.ts';

/** VMIDs freed by this workflow that it remembers as exempt from cooling. */
const keptFreedVmids = 8;
/** Tasks one removal may start per kind before it lets the main loop look afresh. */
const maxRounds = 3;

/** Removes one VM and its seeds. Throws StepFailed; running it again continues where the world stands. */
export async function decommission(life: Life, removal: Removal): Promise<void> {
  // The drain is over: the status speaks of the removal from here on. Runs from before that publish nothing here.
  if (removal.drainUntilMs !== null && patched('drainOver')) removal.drainUntilMs = null;
  try {
    await (removal.purpose === 'retain' ? keep(life, removal) : remove(life, removal));
  } catch (error) {
    const unserved = error instanceof StepFailed && isUnserved(error.failure.facts.reason);
    if (unserved && (await isElsewhere(life, removal))) return;
    if (removal.purpose !== 'orphan' || !isStillWanted(error)) throw error;
    // No orphan after all: whoever wants it is read again.
    forgetRemoval(life, removal);
    life.state.refreshWanted = true;
  }
}

/**
 * The provider may have another name by now: the one that is wanted lists the VM under the same VMID and name, with our
 * mark (design §4). Then that is where the removal goes on.
 */
async function isElsewhere(life: Life, { vm }: Removal): Promise<boolean> {
  const { ref, desired } = life.state;
  const provider = desired?.provider ?? '';
  if (provider === '' || provider === vm.provider) return false;
  try {
    const { vms } = await life.step(
      'listManagedVms',
      { ref, provider },
      { provider, summary: `look for VM ${vm.vmid} on ${provider}` },
    );
    const found = vms.find(({ vmid, name }) => vmid === vm.vmid && name === vm.name);
    if (found) Object.assign(vm, { provider, node: found.node });
    return found !== undefined;
  } catch (error) {
    if (error instanceof StepFailed) return false;
    throw error;
  }
}

async function remove(life: Life, removal: Removal): Promise<void> {
  const { vm } = removal;
  if (!removal.destroyed) {
    try {
      await stop(life, removal);
      await destroy(life, removal);
      if (cloneIsOpen(vm)) {
        await closeClone(life, vm);
        await stop(life, removal);
        await destroy(life, removal);
      }
    } catch (error) {
      if (!isLeftover(error)) throw error;
      return leave(life, removal, error.message);
    }
    removal.destroyed = true;
    life.state.freedVmids = [...life.state.freedVmids, vm.vmid].slice(-keptFreedVmids);
  }
  const { state } = life;
  let kept: boolean;
  try {
    kept = await deleteSeeds(life, removal);
  } catch (error) {
    // It was not ours for a while, renamed perhaps, and left alone: it is looked at again, for it may be ours by now.
    if (state.deleting && isNeededBy(error, vm)) removal.destroyed = false;
    throw error;
  }
  forgetRemoval(life, removal);
  addEvent(
    state,
    'Normal',
    'VmRemoved',
    'Remove',
    `VM ${vm.vmid} (${vm.name}) ${kept ? 'is gone' : 'and its seed are gone'}`,
  );
}

function forgetRemoval({ state }: Life, removal: Removal): void {
  state.removals = state.removals.filter((other) => other !== removal);
}

function isStillWanted(error: unknown): boolean {
  return error instanceof StepFailed && error.failure.facts.reason === 'StillWanted';
}

/** `Retain`: VM and seed stay, and the mark says so to whoever collects orphans (design §2). */
async function keep(life: Life, removal: Removal): Promise<void> {
  const { state } = life;
  const { vm } = removal;
  const { found, unmarkedFor } = await write(() =>
    life.step(
      'configureVm',
      { kind: 'mark', ref: state.ref, vm: refOf(vm), deletionPolicy: 'Retain', retained: true },
      { ...placeOf(vm), summary: `mark VM ${vm.vmid} as retained` },
    ),
  );
  state.removals = state.removals.filter((other) => other !== removal);
  if (!found) return;
  const message = `VM ${vm.vmid} on ${vm.node} stays, as the deletion policy says`;
  if (unmarkedFor === undefined) return addEvent(state, 'Normal', 'VmRetained', 'Delete', message);
  const lacks = `its lock (${unmarkedFor}) did not let its mark be set to retained, and the mark's deletion-policy=Retain keeps it`;
  addEvent(state, 'Warning', 'VmRetained', 'Delete', `${message}; ${lacks}`);
}

function isLeftover(error: unknown): error is StepFailed {
  return error instanceof StepFailed && error.failure.facts.reason === 'VmLeftover';
}

/** No token can clear the lock, so nobody waits for it; a person finds VMID, node and command (design §5). */
function leave(life: Life, removal: Removal, reason: string): void {
  const { state } = life;
  const { provider, vmid, node, cloneUpid } = removal.vm;
  state.removals = state.removals.filter((other) => other !== removal);
  state.leftovers.push({ provider, vmid, node, upid: cloneUpid ?? '', reason });
  addEvent(state, 'Warning', 'VmLeftover', 'Remove', `VM ${vmid} on ${node} stays: ${reason}`);
}

async function stop(life: Life, removal: Removal): Promise<void> {
  const { vm } = removal;
  const result = await write(() =>
    life.step('stopVm', inputOf(life, removal), { ...placeOf(vm), summary: `stop VM ${vm.vmid}` }),
  );
  if (result.kind === 'aborted') {
    await closeClone(life, vm);
    // It may have ended well a moment before, or left its lock: the next look tells.
    return stop(life, removal);
  }
  if (result.kind !== 'gone') closed(vm);
  if (result.kind === 'task') await awaitTask(life, placeOf(vm), 'stop', vm, result.upid);
}

/** It has appeared and is not being cloned any more, so its clone is over. */
function closed(vm: VmRecord): void {
  vm.cloneUpid = null;
  vm.cloneUnknownAtMs = null;
}

/** Asks until the VM is proven gone; a task that ended well is not proof. */
async function destroy(life: Life, removal: Removal): Promise<void> {
  const { vm } = removal;
  for (let round = 0; round < maxRounds; round += 1) {
    const result = await write(() =>
      life.step('destroyVm', inputOf(life, removal), {
        ...placeOf(vm),
        summary: round === 0 ? `destroy VM ${vm.vmid}` : `make sure VM ${vm.vmid} is gone`,
      }),
    );
    if (result.kind === 'gone') return;
    await awaitTask(life, placeOf(vm), 'destroy', vm, result.upid);
  }
  throw stillThere('destroyVm', vm, `VM ${vm.vmid} (${vm.name}) is still listed`);
}

/** Proxmox said «done» and the thing is there: say so and look again later. */
function stillThere(step: 'destroyVm' | 'deleteSeed', vm: VmRecord, message: string): StepFailed {
  return new StepFailed(step, {
    kind: 'failed',
    errorClass: 'Transient',
    message: `${message} although ${maxRounds} tasks to remove it ended well`,
    facts: { reason: 'TaskFailed', scope: 'provider', provider: vm.provider, vmid: vm.vmid },
  });
}

function mayStillAppear(vm: VmRecord, node: string, openMs: number): StepFailed {
  const { seedFile, provider, vmid } = vm;
  return new StepFailed('deleteSeed', {
    kind: 'failed',
    errorClass: 'Transient',
    message: `the upload of ${seedFile} to ${node} ended without an answer; it may still appear`,
    facts: {
      reason: 'UploadNotConfirmed',
      scope: 'provider',
      provider,
      node,
      vmid,
      retryAfterMs: openMs,
    },
  });
}

/** Whether the seed stays. On every node known to have held it; where else it turns up, best effort (design §5): nothing there is waited for. */
async function deleteSeeds(life: Life, removal: Removal): Promise<boolean> {
  const { serving, next } = life.state;
  // A leftover may have the name of the VM that was made instead, and its seed is that one's then.
  if (
    removal.purpose === 'leftover' &&
    [serving, next].some((vm) => vm?.name === removal.vm.name)
  ) {
    return true;
  }
  const others = new Set<string>();
  try {
    for (const node of seedNodesOf(removal.vm)) {
      for (const other of await deleteSeed(life, removal, node)) others.add(other);
    }
  } catch (error) {
    if (isNeededByLeftover(life, error)) return true;
    throw error;
  }
  for (const node of others) {
    try {
      await deleteSeed(life, removal, node);
    } catch (error) {
      if (!(error instanceof StepFailed)) throw error;
    }
  }
  return false;
}

/** The seed is kept for the very VM that was to go. */
function isNeededBy(error: unknown, { vmid }: VmRecord): boolean {
  if (!(error instanceof StepFailed)) return false;
  const { facts } = error.failure;
  return facts.reason === 'DeletionBlocked' && facts.vmid === vmid;
}

/** A leftover may have the name of the VM made instead; nothing waits for one (design §5), and the seed goes with it. */
function isNeededByLeftover({ state }: Life, error: unknown): boolean {
  if (!(error instanceof StepFailed)) return false;
  const { reason, vmid } = error.failure.facts;
  return reason === 'DeletionBlocked' && state.leftovers.some((one) => one.vmid === vmid);
}

/** Gives the other nodes that list the seed. */
async function deleteSeed(life: Life, removal: Removal, node: string): Promise<string[]> {
  const { vm } = removal;
  const input = {
    ref: life.state.ref,
    provider: vm.provider,
    vmName: vm.name,
    seedFile: vm.seedFile,
    node,
    vmid: vm.vmid,
    isoStorage: vm.isoStorage,
    ...(removal.purpose === 'orphan' ? { orphan: true } : {}),
  };
  if (removal.seedGoneFrom.includes(node)) return [];
  for (let round = 0; round < maxRounds; round += 1) {
    const result = await write(() =>
      life.step('deleteSeed', input, {
        ...placeOf(vm),
        summary: `delete ${vm.seedFile} on ${node}`,
      }),
    );
    if (result.kind === 'gone' && vm.seedUpid !== null) {
      // Cut short by a change of mind; until the task has ended the seed may still appear.
      await awaitUpload(life, placeOf(vm), vm).catch((error: unknown) => {
        if (!isTaskEnd(error)) throw error;
      });
      continue;
    }
    if (result.kind === 'gone') {
      const openMs = openForMs(vm.seedUnknownAtMs, vm);
      if (openMs > 0) throw mayStillAppear(vm, node, openMs);
      removal.seedGoneFrom.push(node);
      return result.alsoOn ?? [];
    }
    await awaitTask(life, placeOf(vm), 'seedDelete', vm, result.upid);
  }
  throw stillThere('deleteSeed', vm, `${vm.seedFile} is still listed on ${node}`);
}

function inputOf(life: Life, { vm, purpose }: Removal): StopVmInput {
  const { provider, vmid, node, name, specHash, protectionInherited, cloneIsOwn, cloneUpid } = vm;
  if (purpose === 'retain') throw new TypeError(`VM ${vmid} is to stay`);
  const wanted: DestroyPurpose = life.state.deleting ? 'deletion' : purpose;
  return {
    ref: life.state.ref,
    vm: { provider, vmid, node, name },
    purpose: wanted,
    specHash,
    protectionInherited,
    ownClone: cloneIsOwn ? cloneUpid : null,
  };
}
