/**
 * The line: from a wanted spec to a VM with an address, in the specification's order. Every run starts with a
 * fresh look (`allocateVmid`), so a failure anywhere simply runs it again and finds what is there.
 */
import type { DesiredProxy, VmRecord } from './contract/proxy.ts';
import type { AllocateVmidResult, Plan, UploadSeedResult } from './contract/steps.ts';
import { clone, followClone } from './clone.ts';
import { awaitTask, finished, isTaskEnd, write } from './finished.ts';
import { StepFailed, type Life } from './life.ts';
import { addEvent, retire, type ProxyState } from './state.ts';
import { placeOfPlan, plannedVm, refOf } from './vmRecord.ts';

type Found<K extends AllocateVmidResult['kind']> = Extract<AllocateVmidResult, { kind: K }>;

/** Placement and VMID of the wanted spec: reads only. Throws StepFailed. */
export async function look(
  life: Life,
  desired: DesiredProxy,
  specHash: string,
): Promise<[Plan, AllocateVmidResult]> {
  const { state } = life;
  const { provider, placement, deletionPolicy } = desired;
  const plan = await life.step(
    'resolvePlacement',
    { ref: state.ref, provider, placement, specHash, deletionPolicy },
    { provider, summary: `resolve ${placement.image ?? '?'} on ${provider}` },
  );
  const found = await life.step(
    'allocateVmid',
    {
      ref: state.ref,
      plan,
      recordedVmids: state.next ? [state.next.vmid] : [],
      avoidVmids: avoidedVmids(state),
      ownFreedVmids: state.freedVmids,
      recordedDiskKeys: state.next ? { [state.next.vmid]: state.next.diskKeys } : {},
    },
    { ...placeOfPlan(plan), summary: `find a VMID for ${plan.vmName}` },
  );
  return [plan, found];
}

/** One run of the line. Returns when `state.next` has an address, or when a fresh look is due. */
export async function provision(
  life: Life,
  desired: DesiredProxy,
  specHash: string,
): Promise<void> {
  const { state } = life;
  state.lineTimings = {};
  // What serves is looked at on its own; without one this is the fresh look.
  if (!state.serving) state.lookWanted = false;
  const [plan, found] = await look(life, desired, specHash);
  switch (found.kind) {
    case 'stuck':
      return giveUp(state, plan, found);
    case 'incomplete':
      return discardIncomplete(state, plan, found);
    case 'cloning':
      return followClone(life, plan, found);
    case 'vacant':
      return bringUpClone(life, plan, await clone(life, plan, found));
    case 'ours':
      return found.power === 'hibernated' || bootedTooEarly(state, found)
        ? discardIncomplete(state, plan, found)
        : bringUp(life, plan, adopt(state, plan, found), found.power);
    case 'existing':
    case 'gone':
      throw new Error(`a VMID was asked for and the answer is ${found.kind}`);
  }
}

async function bringUpClone(life: Life, plan: Plan, vm: VmRecord | null): Promise<void> {
  if (vm) await bringUp(life, plan, vm, 'stopped');
}

/**
 * Our own clone runs, and its seed was never attached: somebody started it, or its node did (a template's `onboot` is
 * inherited). A guest that booted without cloud-init never becomes a proxy.
 */
function bootedTooEarly({ next }: ProxyState, found: Found<'ours'>): boolean {
  const unwritten = next?.vmid === found.vmid && next.markedPolicy === null;
  return unwritten && found.power === 'running' && !found.seedAttached;
}

function adopt(state: ProxyState, plan: Plan, found: Found<'ours'>): VmRecord {
  const known = state.next?.vmid === found.vmid ? state.next : null;
  const vm = known ?? plannedVm(plan, found.vmid, found.node, null);
  vm.node = found.node;
  vm.cloneUpid = null;
  vm.cloneUnknownAtMs = null;
  state.next = vm;
  state.cloneEverSent = true;
  return vm;
}

/** Seed, config and size for a VM that is not running, then start and address. */
async function bringUp(life: Life, plan: Plan, vm: VmRecord, power: string): Promise<void> {
  const { state } = life;
  const { ref } = state;
  const input = { ref, plan, vm: refOf(vm) };
  if (power !== 'running') {
    await upload(life, plan, vm);
    if (plan.diskGiB !== null) {
      await finished(life, plan, 'resize', vm, () =>
        life.step('resizeDisk', input, {
          ...placeOfPlan(plan),
          summary: `resize the disk of VM ${vm.vmid} to ${plan.diskGiB} GiB`,
        }),
      );
    }
    await finished(life, plan, 'start', vm, () =>
      life.step('startVm', input, {
        ...placeOfPlan(plan),
        summary: `start VM ${vm.vmid} on ${vm.node}`,
      }),
    );
  }
  vm.startedAtMs ??= Date.now();
  const running = await life.step('awaitRunning', input, {
    ...placeOfPlan(plan),
    summary: `wait until VM ${vm.vmid} runs`,
  });
  vm.node = running.node;
  vm.power = 'running';
  const agent = await life.step('pollAgent', input, {
    ...placeOfPlan(plan),
    summary: `ask the guest agent of VM ${vm.vmid} for its address`,
  });
  vm.node = agent.node;
  vm.ip = agent.ip;
  vm.agent = { reachable: true, reason: 'AgentAnswered', message: '' };
  state.trouble = null;
  addEvent(
    state,
    'Normal',
    'AddressKnown',
    'Provision',
    `VM ${vm.vmid} on ${vm.node} has the address ${vm.ip}`,
  );
}

async function upload(life: Life, plan: Plan, vm: VmRecord): Promise<void> {
  const { ref } = life.state;
  const { bytes: seedBytes } = await write(() => uploadOnce(life, plan, vm));
  await awaitUpload(life, placeOfPlan(plan), vm);
  await write(() =>
    life.step(
      'configureVm',
      {
        kind: 'start',
        ref,
        plan,
        vm: refOf(vm),
        seedBytes,
        clearProtection: vm.protectionInherited,
      },
      { ...placeOfPlan(plan), summary: `write the config of VM ${vm.vmid}` },
    ),
  );
  vm.protectionInherited = false;
  vm.markedPolicy = plan.deletionPolicy;
}

/** Waits for the upload's task, if its end was not seen yet. */
export async function awaitUpload(
  life: Life,
  place: ReturnType<typeof placeOfPlan>,
  vm: VmRecord,
): Promise<void> {
  if (vm.seedUpid === null) return;
  try {
    await awaitTask(life, place, 'upload', vm, vm.seedUpid);
    vm.seedUpid = null;
  } catch (error) {
    if (isTaskEnd(error)) vm.seedUpid = null;
    throw error;
  }
}

/** An upload without an answer may still make the seed appear; the record says since when. */
export async function uploadOnce(life: Life, plan: Plan, vm: VmRecord): Promise<UploadSeedResult> {
  if (!vm.seedNodes.includes(vm.node)) vm.seedNodes.push(vm.node);
  vm.isoStorage = plan.isoStorage;
  try {
    const uploaded = await life.step(
      'uploadSeed',
      { ref: life.state.ref, plan, vm: refOf(vm) },
      { ...placeOfPlan(plan), summary: `upload ${plan.seedFile} to ${vm.node}` },
    );
    if (!vm.seedNodes.includes(uploaded.node)) vm.seedNodes.push(uploaded.node);
    vm.seedUpid = uploaded.upid;
    return uploaded;
  } catch (error) {
    const unknown = error instanceof StepFailed && error.failure.facts.outcomeUnknown === true;
    if (unknown) vm.seedUnknownAtMs = Date.now();
    throw error;
  }
}

/** A lock that no token can clear: the VMID is left to a person, the line goes on with the next one. */
function giveUp(state: ProxyState, plan: Plan, found: Found<'stuck'>): void {
  if (state.leftovers.length > 0) {
    throw new StepFailed('allocateVmid', {
      kind: 'failed',
      errorClass: 'Transient',
      message: `VM ${found.vmid} on ${found.node} is locked (${found.lock}) and one VMID was given up already`,
      facts: {
        reason: 'VmLeftover',
        scope: 'proxy',
        vmid: found.vmid,
        node: found.node,
        lock: found.lock,
        remedy: found.remedy,
      },
    });
  }
  state.leftovers.push({
    provider: plan.provider,
    vmid: found.vmid,
    node: found.node,
    upid: state.next?.cloneUpid ?? '',
    reason: `locked (${found.lock}); ${found.remedy}`,
  });
  state.next = null;
  addEvent(
    state,
    'Warning',
    'VmLeftover',
    'Provision',
    `VM ${found.vmid} on ${found.node} is locked (${found.lock}) for good; ${found.remedy}`,
  );
}

function discardIncomplete(
  state: ProxyState,
  plan: Plan,
  found: { vmid: number; node: string },
): void {
  const vm =
    state.next?.vmid === found.vmid ? state.next : plannedVm(plan, found.vmid, found.node, null);
  vm.node = found.node;
  retire(state, vm, 'incomplete', null);
  state.next = null;
}

/** VMIDs that are not to be taken for the VM that is made: given up, on their way out, or serving. */
export function avoidedVmids(state: ProxyState): number[] {
  const others = [
    ...state.leftovers.map((left) => left.vmid),
    ...state.removals.map((r) => r.vm.vmid),
  ];
  return state.serving ? [...others, state.serving.vmid] : others;
}
