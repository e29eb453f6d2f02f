/** Destroys the stopped VM with its disks. Its seed stays: neither destroy nor purge touches an ISO. */
import type { Step, StepContext, StepDeps } from './deps.ts';
import { exclusively } from './facts/exclusive.ts';
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
import { listTasksEverywhere, slotsTaken } from './facts/tasks.ts';
import { vmAt } from './facts/vms.ts';
import { transient } from './providerError.ts';
import type { ProxmoxApi, VmRow } from './proxmox/api.ts';
import { hasProcess, hibernationLock } from './vm/state.ts';
import { haRoundMs, slotRetryMs } from '../workflows/contract/budgets.ts';
import type { DestroyVmInput, DestroyVmResult } from '../workflows/contract/removalSteps.ts';

/**
 * `gone` only by a listing whose rights are proven. The identity is read again as the last thing before the request.
 * Throws as facts/removal.ts and facts/purpose.ts say; Transient `WaitingForSlot`, `DeletionBlocked`, and with
 * `goBack` (stop first) when the VM runs again.
 */
export const destroyVm: Step<DestroyVmInput, DestroyVmResult> = async (deps, context, input) => {
  const { provider } = input.vm;
  const api = deps.providers.api(provider, context.call);
  const row = await findRow(deps, api, input);
  if (row === null) {
    context.log.debug('proxmox vm already gone');
    return { kind: 'gone' };
  }
  const seen = await readRemovable(deps, context, api, row, input);
  const settled = await settle(api, seen, input);
  if (settled !== null) return settled;
  return exclusively(deps.providers, `destroy ${provider}`, context.call.signal, () =>
    destroy(deps, context, api, row, input),
  );
};

/** `null` when the VM may be destroyed now. */
async function settle(
  api: ProxmoxApi,
  vm: RemovableVm | null,
  input: DestroyVmInput,
): Promise<DestroyVmResult | null> {
  if (vm === null) return { kind: 'gone' };
  const { vmid, node, lock } = vm;
  const destroying = vm.tasks.find(({ type }) => type === 'qmdestroy');
  if (destroying !== undefined) return { kind: 'task', node, upid: destroying.upid };
  if (lock !== null && lock !== hibernationLock) {
    await requireLiveLock(api, vm, lock);
    throw waitingForLock(vm, lock);
  }
  if (hasProcess(vm.power)) throw stillRunning(vm);
  const protection = protectionOf(vm, input);
  if (protection === 'chosen') throw deletionBlocked(vm);
  // Clearing it is a change of its own, and stopVm's.
  if (protection === 'inherited') throw protectedAgain(vm);
  const [busy] = vm.tasks;
  if (busy === undefined) return null;
  // A destroy behind a stop waits for the VM's file lock, and gives up after ten seconds (cases.md 3).
  throw transient('WaitingForLock', `${vmAt(vm)} is still held by task ${busy.upid}; waiting`, {
    vmid,
    node,
    upid: busy.upid,
    retryAfterMs: 1_000,
  });
}

function stillRunning(vm: RemovableVm): Error {
  const { vmid, node, haManaged } = vm;
  const why = haManaged
    ? 'still runs: the HA manager stops it within seconds'
    : 'runs (again); it is stopped before it is destroyed';
  return transient('VmRunning', `${vmAt(vm)} ${why}`, {
    vmid,
    node,
    goBack: true,
    ...(haManaged ? { retryAfterMs: haRoundMs } : {}),
  });
}

function protectedAgain(vm: RemovableVm): Error {
  const { vmid, node } = vm;
  const message = `${vmAt(vm)} has the protection of its template; that is cleared first`;
  return transient('DeletionBlocked', message, { vmid, node, goBack: true });
}

/** Count, last look and request, as one critical section. */
async function destroy(
  deps: StepDeps,
  context: StepContext,
  api: ProxmoxApi,
  row: VmRow,
  input: DestroyVmInput,
): Promise<DestroyVmResult> {
  const { provider } = input.vm;
  await requireSlot(deps, api, input);
  await confirmPurpose(deps, input);
  const vm = await readRemovable(deps, context, api, row, input);
  const settled = await settle(api, vm, input);
  if (settled !== null || vm === null) return settled ?? { kind: 'gone' };
  const { destroyUnreferencedDisks } = deps.providers.config(provider).proxmox;
  context.heartbeat();
  const fresh = freshApi(deps, context, provider, vm.readAtMs);
  const upid = await fresh.destroy(vm.node, vm.vmid, { destroyUnreferencedDisks });
  return { kind: 'task', node: vm.node, upid };
}

async function requireSlot(deps: StepDeps, api: ProxmoxApi, { vm }: DestroyVmInput): Promise<void> {
  const { maxDestroys } = deps.providers.config(vm.provider).proxmox;
  const filter = { type: 'qmdestroy', activeOnly: true };
  const { tasks } = await listTasksEverywhere(api, await api.listNodes(), filter);
  const taken = slotsTaken(tasks, 'qmdestroy', await api.tokenId());
  if (taken < maxDestroys) return;
  throw transient(
    'WaitingForSlot',
    `destroy of VM ${vm.vmid}: not yet, ${taken} of ${maxDestroys} slots taken`,
    { provider: vm.provider, vmid: vm.vmid, retryAfterMs: slotRetryMs },
  );
}
