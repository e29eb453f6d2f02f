/** Grows the boot disk to the machine type's size. */
import type { Step } from './deps.ts';
import { findOurVm, vmAt } from './facts/vms.ts';
import { permanent } from './providerError.ts';
import { bootDisk, resizeTarget } from './vm/hardware.ts';
import { hasProcess } from './vm/state.ts';
import type { SubmitResult, VmStepInput } from '../workflows/contract/steps.ts';

/**
 * `upid: null` when the machine type asks for no size, the disk is large enough or the VM runs. The volume's actual
 * size decides, not `size=`: without quorum a resize grows the disk and then fails, again with every try
 * (pve/cluster.md 25). Throws Permanent `TemplateUnusable` when there is no disk to grow.
 */
export const resizeDisk: Step<VmStepInput, SubmitResult> = async (deps, context, input) => {
  const { ref, plan, vm } = input;
  if (plan.diskGiB === null) return { upid: null };
  const api = deps.providers.api(plan.provider, context.call);
  const { node, vmid, config, power } = await findOurVm(deps, api, ref, vm);
  if (hasProcess(power)) return { upid: null };
  const disk = bootDisk(config.values);
  if (disk === null || disk.storage === null) {
    const remedy = `name one with: qm set ${vmid} --boot order=<disk>`;
    throw permanent(
      'TemplateUnusable',
      `${vmAt({ vmid, node })} has no boot disk on a storage, and machine type ${plan.machineType} sets diskGiB; ${remedy}`,
      { scope: 'provider', vmid, node, remedy },
    );
  }
  const actualBytes = await api.getVolumeSize(node, disk.storage, disk.volume);
  const target = resizeTarget(config.values, plan.diskGiB, actualBytes);
  if (target === null) return { upid: null };
  context.heartbeat();
  return { upid: await api.resize(node, vmid, target.disk, target.size, config.digest) };
};
