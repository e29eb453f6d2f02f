/**
 * A VM that has its address is looked at afresh when somebody saw it differ (`observed`), and mended where that is
 * certain (design §7). One that passes its probes is never stopped or started again.
 */
import type { DesiredProxy, VmRecord } from './contract/proxy.ts';
import type { AllocateVmidResult } from './contract/steps.ts';
import { write } from './finished.ts';
import { StepFailed, type Life } from './life.ts';
import { isPaused, mendPower } from './mendPower.ts';
import { avoidedVmids } from './provision.ts';
import { addEvent, forgetHealth, type ProxyState, type Trouble } from './state.ts';
import { latchedTrouble } from './trouble.ts';
import type { StepInput } from './steps.ts';
import { giveUpStuck, noteVanished } from './vanished.ts';
import { placeOf, planOf, refOf } from './vmRecord.ts';

type Existing = Extract<AllocateVmidResult, { kind: 'existing' }>;

/** Looks at every VM of the Proxy that has an address. Throws StepFailed; the caller paces the next try. */
export async function repair(life: Life): Promise<void> {
  const { state } = life;
  // Still due if this run has to continue as new first.
  state.lookWanted = true;
  // News of a pause or a deletion may be on its way, and nothing is started or made against it.
  if (!(await life.readAgain())) return;
  const { desired, objectFound, deleting } = state;
  if (!desired || !objectFound || deleting) return;
  state.lookWanted = false;
  let trouble: Trouble | null = null;
  for (const vm of [state.serving, state.next]) {
    if (vm?.ip) trouble = (await repairOne(life, desired, vm)) ?? trouble;
  }
  state.repairTrouble = trouble;
}

/** What is left in the way, which only news can change; `null` when the VM is as it should be. */
async function repairOne(life: Life, desired: DesiredProxy, vm: VmRecord): Promise<Trouble | null> {
  const { state } = life;
  const found = await look(life, desired, vm);
  if (found === null) return nodeUnreachable(state, vm);
  switch (found.kind) {
    case 'gone':
      noteVanished(state, desired, vm, Date.now());
      return null;
    case 'stuck':
      return giveUpStuck(state, vm, found, Date.now());
    case 'existing':
      if (found.vmid === vm.vmid) return mend(life, desired, vm, found);
      // Restored under another VMID: the line takes it up there.
      noteVanished(state, desired, vm, Date.now());
      return null;
    default:
      throw new Error(`a look at VM ${vm.vmid} cannot find it ${found.kind}`);
  }
}

/** `null`: the node of the VM does not answer, so nobody knows. */
async function look(
  life: Life,
  { deletionPolicy }: DesiredProxy,
  vm: VmRecord,
): Promise<AllocateVmidResult | null> {
  const input = {
    ref: life.state.ref,
    plan: planOf(vm, deletionPolicy),
    recordedVmids: [vm.vmid],
    // One of the same name that was given up or is on its way out is not the VM that is looked at.
    avoidVmids: avoidedVmids(life.state).filter((vmid) => vmid !== vm.vmid),
    ownFreedVmids: [],
    recordedDiskKeys: {},
    existingOnly: true,
  } as const satisfies StepInput<'allocateVmid'>;
  try {
    return await life.step('allocateVmid', input, {
      ...placeOf(vm),
      summary: `look at VM ${vm.vmid}`,
    });
  } catch (error) {
    const facts = error instanceof StepFailed ? error.failure.facts : null;
    if (facts?.reason === 'Unreachable' && facts.node !== undefined) return null;
    throw error;
  }
}

function nodeUnreachable(state: ProxyState, vm: VmRecord): Trouble {
  const message = `node ${vm.node} of VM ${vm.vmid} does not answer; the VM is left as it is`;
  const remedy = `bring node ${vm.node} back (pvecm status)`;
  if (vm.power !== 'unreachable') {
    addEvent(state, 'Warning', 'NodeUnreachable', 'Repair', `${message}; ${remedy}`);
  }
  vm.power = 'unreachable';
  return latchedTrouble(state.repairTrouble, 'NodeUnreachable', message, remedy, Date.now());
}

async function mend(
  life: Life,
  desired: DesiredProxy,
  vm: VmRecord,
  found: Existing,
): Promise<Trouble | null> {
  const { state } = life;
  noteNode(state, vm, found.node);
  if (found.power !== 'running') return mendPower(life, desired, vm, found);
  const before = vm.power;
  vm.power = found.ioError ? 'io-error' : 'running';
  if (before !== null && before !== 'running' && vm.power === 'running') {
    addEvent(state, 'Normal', 'VmStarted', 'Repair', `VM ${vm.vmid} on ${vm.node} runs`);
  }
  // Power and what is said of it are shown together.
  const trouble = found.ioError ? ioError(state, vm, before) : null;
  if (vm === state.serving) state.repairTrouble = trouble;
  if (!isPaused(state)) await mendLabels(life, vm, found);
  await askAgent(life, desired, vm, found);
  return trouble;
}

function noteNode(state: ProxyState, vm: VmRecord, node: string): void {
  if (vm.node === node) return;
  addEvent(state, 'Normal', 'VmMoved', 'Repair', `VM ${vm.vmid} is on ${node} now, not ${vm.node}`);
  vm.node = node;
}

/** Only a person can say whether the disk may be written again, so it is reported and left alone. */
function ioError(state: ProxyState, vm: VmRecord, before: VmRecord['power']): Trouble {
  const message = `VM ${vm.vmid} on ${vm.node} is halted by an I/O error of its disk`;
  const remedy = `mend its storage, then on ${vm.node}: qm resume ${vm.vmid}`;
  if (before !== 'io-error') {
    addEvent(state, 'Warning', 'VmIoError', 'Repair', `${message}; ${remedy}`);
  }
  return latchedTrouble(state.repairTrouble, 'VmIoError', message, remedy, Date.now());
}

/** Tag and agent option of a VM that runs; nothing else of its config is touched. */
async function mendLabels(life: Life, vm: VmRecord, found: Existing): Promise<void> {
  // A backup or migration is not disturbed; the watch comes back to it.
  if ((found.tagged && found.agentEnabled) || found.lock !== null) return;
  const { state } = life;
  const { changed } = await write(() =>
    life.step(
      'configureVm',
      { kind: 'mend', ref: state.ref, vm: refOf(vm), emptyDrive: false },
      { ...placeOf(vm), summary: `set tag and agent option of VM ${vm.vmid}` },
    ),
  );
  if (changed.length === 0) return;
  const message = `set again on VM ${vm.vmid} on ${vm.node}: ${changed.join(', ')}`;
  addEvent(state, 'Normal', 'ConfigMended', 'Repair', message);
}

/** One question. The last good address is kept when there is no answer (design §7). */
async function askAgent(
  life: Life,
  desired: DesiredProxy,
  vm: VmRecord,
  found: Existing,
): Promise<void> {
  const { state } = life;
  if (!found.agentEnabled) {
    const remedy = `stop and start VM ${vm.vmid} when it suits, it takes effect then`;
    const set = isPaused(state) ? 'was switched off' : 'was switched off and is set again';
    const message = `the guest agent of VM ${vm.vmid} ${set}; ${remedy}`;
    return agentIs(state, vm, { reachable: false, reason: 'AgentSilent', message });
  }
  const plan = planOf(vm, desired.deletionPolicy);
  const input = { ref: state.ref, plan, vm: refOf(vm), once: true, previous: vm.ip } as const;
  try {
    const { ip, node } = await life.step('pollAgent', input, {
      ...placeOf(vm),
      summary: `ask the guest agent of VM ${vm.vmid} for its address`,
    });
    vm.node = node;
    agentIs(state, vm, { reachable: true, reason: 'AgentAnswered', message: '' });
    followAddress(state, vm, ip);
  } catch (error) {
    if (!(error instanceof StepFailed)) throw error;
    const { reason } = error.failure.facts;
    if (reason !== 'AgentSilent' && reason !== 'AddressAmbiguous') throw error;
    agentIs(state, vm, { reachable: false, reason, message: error.failure.message });
  }
}

function agentIs(state: ProxyState, vm: VmRecord, agent: NonNullable<VmRecord['agent']>): void {
  const { reason, message } = agent;
  if (!agent.reachable && vm.agent?.reachable !== false) {
    addEvent(state, 'Warning', reason, 'Repair', message);
  }
  vm.agent = agent;
}

/** Whoever had the address before says nothing about the new one: it is probed from nothing. */
function followAddress(state: ProxyState, vm: VmRecord, ip: string): void {
  if (vm.ip === ip) return;
  const message = `VM ${vm.vmid} has the address ${ip} now, not ${vm.ip}`;
  addEvent(state, 'Normal', 'AddressChanged', 'Repair', message);
  forgetHealth(state, vm.ip);
  vm.ip = ip;
  if (vm === state.serving) state.addressHeldBy = null;
}
