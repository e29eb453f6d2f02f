/** Placement → plan: the catalogue's facts, fixed for one run of the line. Sends no request. */
import type { Step } from './deps.ts';
import { permanent } from './providerError.ts';
import { seedFileFor, vmNameFor } from './vm/identity.ts';
import { place } from './vm/placement.ts';
import type { Plan, ResolvePlacementInput } from '../workflows/contract/steps.ts';

/** Throws Permanent `PlacementInvalid` with the specification's sentences (all of them), Transient `ProviderUnknown`. */
export const resolvePlacement: Step<ResolvePlacementInput, Plan> = async (deps, context, input) => {
  const { ref, provider, placement, specHash, deletionPolicy } = input;
  const config = deps.providers.config(provider);
  const result = place(placement, config);
  if (result.kind === 'invalid') {
    const remedy = result.known.length === 0 ? {} : { remedy: result.known.join('; ') };
    throw permanent('PlacementInvalid', result.problems.join('; '), { provider, ...remedy });
  }
  const { proxmox } = config;
  const vmName = vmNameFor({
    proxyName: ref.name,
    uid: ref.uid,
    installationHex: deps.installation.hex,
    specHash,
  });
  const plan: Plan = {
    ...result.placed,
    provider,
    vmName,
    seedFile: seedFileFor(vmName),
    specHash,
    deletionPolicy,
    storage: proxmox.storage,
    isoStorage: proxmox.isoStorage,
    bridge: proxmox.bridge,
    vlanTag: proxmox.vlanTag,
    vmidMin: proxmox.vmidRange.min,
    vmidMax: proxmox.vmidRange.max,
    requestBoundMs: proxmox.requestTimeoutSeconds * 1_000,
    abortClones: proxmox.abortClones,
  };
  context.log.trace(plan, 'proxmox create resolved');
  return plan;
};
