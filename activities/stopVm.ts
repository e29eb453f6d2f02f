/** Stops the VM, hard, so that it can be destroyed. */
import type { Step, StepContext, StepDeps } from './deps.ts';
import { requireLiveLock, waitingForLock } from './facts/locks.ts';
import { confirmPurpose } from './facts/purpose.ts';
import {
  deletionBlocked,
  findRow,
  freshApi,
  protectionOf,
  readRemovable,
  type RemovableVm,
} from './facts/removal.ts';
import { ProviderError } from './providerError.ts';
import type { ProxmoxApi, Upid } from './proxmox/api.ts';
import { hasProcess, hibernationLock } from './vm/state.ts';
import type { StopVmInput, StopVmResult } from '../workflows/contract/removalSteps.ts';

/**
 * A hibernated VM counts as stopped: it is destroyed directly. On an HA-managed one the task only asks for the stop,
 * so the answer is `task` until the VM really is stopped. A protection somebody chose is told before the stop;
 * an inherited one is cleared on the stopped VM as this step's one change. Where the provider says `abortClones`,
 * a VM that is still being cloned is stopped by ending its clone. Throws as facts/removal.ts and
 * facts/purpose.ts say, and Transient `DeletionBlocked`.
 */
export const stopVm: Step<StopVmInput, StopVmResult> = async (deps, context, input) => {
  const { provider } = input.vm;
  const api = deps.providers.api(provider, context.call);
  if (await abortClone(deps, context, api, input)) return { kind: 'aborted' };
  const row = await findRow(deps, api, input);
  if (row === null) {
    context.log.debug('proxmox vm already gone');
    context.log.debug({ destroyed: false }, 'proxmox vm deleted');
    return { kind: 'gone' };
  }
  await confirmPurpose(deps, input);
  const vm = await readRemovable(deps, context, api, row, input);
  if (vm === null) {
    context.log.debug({ destroyed: false }, 'proxmox vm deleted');
    return { kind: 'gone' };
  }
  const protection = protectionOf(vm, input);
  if (protection === 'chosen') throw deletionBlocked(vm);
  const { node, vmid, lock } = vm;
  if (lock !== null && lock !== hibernationLock) {
    await requireLiveLock(api, vm, lock);
    throw waitingForLock(vm, lock);
  }
  if (!hasProcess(vm.power)) {
    if (protection === 'inherited') await clearProtection(deps, context, input, vm);
    return { kind: 'stopped', node };
  }
  const stopping = vm.tasks.find(({ type }) => type === 'qmstop');
  if (stopping !== undefined) return { kind: 'task', node, upid: stopping.upid };
  context.heartbeat();
  const upid = await freshApi(deps, context, provider, vm.readAtMs).stop(node, vmid);
  return { kind: 'task', node, upid };
};

/**
 * `abortClones`: ends the clone that makes this VM. Only a task whose UPID came as the answer to our own request is
 * ours for certain; any other is waited for. Proxmox answers `null` whether the task ended now or before
 * (11-task-stop, 19-task-stop-finished), and one told too late ends well (20-task-status-after-stop).
 */
async function abortClone(
  deps: StepDeps,
  context: StepContext,
  api: ProxmoxApi,
  input: StopVmInput,
): Promise<boolean> {
  const { ownClone: upid, vm } = input;
  if (upid === null || !deps.providers.config(vm.provider).proxmox.abortClones) return false;
  // Another token's task is none that this one may end (api-facts 2.4).
  if (upid.split(':')[7] !== (await api.tokenId())) return false;
  const readAtMs = deps.clock.now();
  if (!(await isUnderWay(api, upid))) return false;
  await confirmPurpose(deps, input);
  context.heartbeat();
  await freshApi(deps, context, vm.provider, readAtMs).abortTask(upid);
  context.log.info({ upid }, 'proxmox clone aborted');
  return true;
}

async function isUnderWay(api: ProxmoxApi, upid: Upid): Promise<boolean> {
  try {
    return (await api.getTask(upid)).status === 'running';
  } catch (error) {
    if (error instanceof ProviderError && error.facts.reason === 'TaskUnknown') return false;
    throw error;
  }
}

async function clearProtection(
  deps: StepDeps,
  context: StepContext,
  { vm: { provider } }: StopVmInput,
  { node, vmid, config, readAtMs }: RemovableVm,
): Promise<void> {
  context.heartbeat();
  const options = { delete: ['protection'], digest: config.digest };
  await freshApi(deps, context, provider, readAtMs).setVmConfig(node, vmid, {}, options);
}
