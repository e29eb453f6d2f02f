/** A VM that serves and does not run is started again, ever more slowly when that repeats (design §7). */
import { repeatMemoryMs, repeatRetryMs } from './contract/budgets.ts';
import type { DesiredProxy, VmRecord } from './contract/proxy.ts';
import type { AllocateVmidResult, Plan } from './contract/steps.ts';
import { finished, write } from './finished.ts';
import { StepFailed, type Life } from './life.ts';
import { awaitUpload, uploadOnce } from './provision.ts';
import { addEvent, forgetHealth, type ProxyState, type Trouble } from './state.ts';
import { latchedTrouble } from './trouble.ts';
import { forget } from './vanished.ts';
import { placeOf, planOf, refOf } from './vmRecord.ts';

type Existing = Extract<AllocateVmidResult, { kind: 'existing' }>;

/** What was seen of a paused Proxy is told; nothing is changed. */
export function isPaused({ desired }: ProxyState): boolean {
  return desired?.paused === true;
}

/** Stopped, paused or hibernated: it serves nobody, which is told before anything is done about it. */
export async function mendPower(
  life: Life,
  desired: DesiredProxy,
  vm: VmRecord,
  found: Existing,
): Promise<Trouble | null> {
  const { state } = life;
  const plan = planOf(vm, desired.deletionPolicy);
  const trouble = noteStop(state, vm, found, Date.now());
  if (isPaused(state)) return trouble;
  if (vm !== state.serving) {
    // Never Ready: the line gives it seed, config and size again before it starts it.
    forget(vm);
    if (trouble.nextAtMs !== null) state.trouble = trouble;
    return null;
  }
  if (trouble.nextAtMs !== null && trouble.nextAtMs > Date.now()) return trouble;
  if (found.seed === 'missing') await mendSeed(life, desired, vm, found);
  // Somebody may have paused it meanwhile: no start follows that (design §7).
  if (isPaused(state)) return trouble;
  const input = { ref: state.ref, plan, vm: refOf(vm) };
  await finished(life, plan, 'start', vm, () =>
    life.step('startVm', input, { ...placeOf(vm), summary: `start VM ${vm.vmid} on ${vm.node}` }),
  );
  const running = await life.step('awaitRunning', input, {
    ...placeOf(vm),
    summary: `wait until VM ${vm.vmid} runs`,
  });
  vm.node = running.node;
  vm.power = 'running';
  addEvent(state, 'Normal', 'VmStarted', 'Repair', `VM ${vm.vmid} on ${vm.node} runs again`);
  return null;
}

/** What is told of it, with the time of the next start when it is not to be at once. */
function noteStop(state: ProxyState, vm: VmRecord, { power }: Existing, nowMs: number): Trouble {
  const seenFirst = vm.power !== power;
  vm.power = power === 'unknown' ? null : power;
  forgetHealth(state, vm.ip);
  if (seenFirst) state.stops = [...state.stops.filter((at) => at > nowMs - repeatMemoryMs), nowMs];
  const { stops } = state;
  const waitMs = isPaused(state) ? 0 : repeatRetryMs(stops.length);
  const often = waitMs > 0 ? `, the ${stops.length}. time within an hour` : '';
  const message = `VM ${vm.vmid} on ${vm.node} is ${power}${often}; ${fateOf(state, waitMs)}`;
  if (seenFirst) addEvent(state, 'Warning', 'VmStopped', 'Repair', message);
  const remedy = waitMs > 0 ? `find out what stops it: the tasks of VM ${vm.vmid}, its log` : null;
  const trouble = latchedTrouble(state.repairTrouble, 'VmStopped', message, remedy, nowMs);
  state.repairTrouble = trouble;
  if (waitMs > 0) trouble.nextAtMs = (stops.at(-1) ?? nowMs) + waitMs;
  return trouble;
}

function fateOf(state: ProxyState, waitMs: number): string {
  if (isPaused(state)) return 'the Proxy is paused, so it stays so';
  return waitMs === 0 ? 'starting it' : `started again ${waitMs / 60_000} min after it was seen so`;
}

/**
 * A VM does not start while its CD-ROM names a file that is not there. The guest reads the seed at its first boot only,
 * so where the same one cannot be made again the drive is emptied.
 */
async function mendSeed(
  life: Life,
  desired: DesiredProxy,
  vm: VmRecord,
  found: Existing,
): Promise<void> {
  const { ref } = life.state;
  const { isoStorage } = found;
  const plan: Plan = { ...planOf(vm, desired.deletionPolicy), isoStorage: isoStorage ?? '' };
  if (vm.specHash === desired.specHash && isoStorage !== null) {
    try {
      await write(() => uploadOnce(life, plan, vm));
      return await awaitUpload(life, placeOf(vm), vm);
    } catch (error) {
      if (!isOtherSpec(error)) throw error;
    }
  }
  await write(() =>
    life.step(
      'configureVm',
      { kind: 'mend', ref, vm: refOf(vm), emptyDrive: true },
      { ...placeOf(vm), summary: `empty the CD-ROM drive of VM ${vm.vmid}` },
    ),
  );
  const message = `the seed of VM ${vm.vmid} is lost and cannot be made again: its CD-ROM drive is empty now`;
  addEvent(life.state, 'Warning', 'ConfigMended', 'Repair', message);
}

function isOtherSpec(error: unknown): boolean {
  if (!(error instanceof StepFailed)) return false;
  const { reason } = error.failure.facts;
  return reason === 'CloudInitChanged' || reason === 'CloudInitUnavailable';
}
