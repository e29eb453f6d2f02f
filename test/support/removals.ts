/** What tests of stopVm and destroyVm share. */
import { awaitTask } from '../../activities/awaitTask.ts';
import type { StopVmInput } from '../../workflows/contract/removalSteps.ts';
import { withSteps, type StepRig } from './stepHarness.ts';

/** Input of stopVm and destroyVm for the rig's own VM. */
export function removing(rig: StepRig, fields: Partial<StopVmInput> = {}): StopVmInput {
  return {
    ref: rig.ref,
    vm: rig.vmRef(),
    purpose: 'deletion',
    specHash: rig.plan.specHash,
    protectionInherited: false,
    ownClone: null,
    ...fields,
  };
}

/** A rig whose Proxy is being deleted. */
export function deleting(
  body: (rig: StepRig) => Promise<void>,
  options: Parameters<typeof withSteps>[1] = {},
): Promise<void> {
  return withSteps(async (rig) => {
    rig.records.markDeleting(rig.ref);
    await body(rig);
  }, options);
}

/** Requests that could have changed something on Proxmox. */
export function writes(rig: StepRig): string[] {
  return rig.simulator.requests
    .filter(({ method }) => method !== 'GET')
    .map(({ method, path }) => `${method} ${path}`);
}

/** Waits for the task of a stop or destroy. Throws as `awaitTask` does. */
export function ended(rig: StepRig, upid: string, kind: 'stop' | 'destroy'): Promise<unknown> {
  return rig.run(awaitTask, { provider: 'pve', upid, kind, vmid: rig.vmid });
}
