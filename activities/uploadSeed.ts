/** Builds the seed and uploads it to the node the VM is on. The only step that sees cloud-init. */
import type { Step, StepContext, StepDeps } from './deps.ts';
import { findOurVm } from './facts/vms.ts';
import { wantedSpec } from './facts/wantedSpec.ts';
import { ProviderError, transient } from './providerError.ts';
import { buildSeed } from './seed/nocloud.ts';
import { hasProcess } from './vm/state.ts';
import type { UploadSeedInput, UploadSeedResult } from '../workflows/contract/steps.ts';

/**
 * Uploads every time, because an earlier attempt may have been cut off in the middle; `configureVm` confirms size
 * and place. A VM that runs keeps its seed (`upid: null`): an upload overwrites the file in place (api-facts 5.8).
 * Throws Transient `CloudInitChanged` (goBack), `CloudInitUnavailable`, NotFound `ObjectGone`.
 */
export const uploadSeed: Step<UploadSeedInput, UploadSeedResult> = async (deps, context, input) => {
  const { ref, plan, vm } = input;
  const api = deps.providers.api(plan.provider, context.call);
  const { node, power } = await findOurVm(deps, api, ref, vm);
  if (hasProcess(power)) return { upid: null, node, bytes: 0 };
  const image = await seedImage(deps, context, input);
  context.heartbeat();
  const upid = await api.uploadIso(node, plan.isoStorage, plan.seedFile, image);
  context.log.debug({ node, bytes: image.length }, 'proxmox seed sent');
  return { upid, node, bytes: image.length };
};

async function seedImage(
  deps: StepDeps,
  { log }: StepContext,
  { ref, plan }: UploadSeedInput,
): Promise<Uint8Array> {
  const proxy = await deps.kubernetes.get(ref);
  if (proxy === null) {
    throw new ProviderError(
      'NotFound',
      `Proxy ${ref.namespace}/${ref.name} is gone; no seed is made for it`,
      { reason: 'ObjectGone', scope: 'proxy' },
    );
  }
  const { cloudInit, specHash } = await wantedSpec(deps, proxy);
  if (cloudInit === null || specHash !== plan.specHash) {
    throw transient(
      'CloudInitChanged',
      `spec or cloud-init of Proxy ${ref.namespace}/${ref.name} changed since this VM was planned; starting again with the new one`,
      { goBack: true },
    );
  }
  // Its size is all that is ever told of it.
  log.trace({ cloudInitBytes: cloudInit.byteLength }, 'proxmox seed built');
  const { vendorData, installGuestAgent } = deps.providers.config(plan.provider).proxmox;
  return buildSeed({
    vmName: plan.vmName,
    userData: cloudInit,
    vendorData,
    installGuestAgent,
  });
}
