/** Makes a Proxy ours (finalizer) and reads what is wanted. Changes nothing on Proxmox and knows no provider. */
import { finalizer, forceDeleteAnnotation, retryAnnotation } from '../api/proxy.ts';
import type { Proxy } from '../api/proxy.ts';
import type { DesiredProxy } from '../workflows/contract/proxy.ts';
import type {
  ClaimProxyInput,
  ClaimProxyResult,
  RecordedReplacement,
  RecordedStatus,
} from '../workflows/contract/steps.ts';
import type { Step, StepDeps } from './deps.ts';
import { readCloudInit } from './kubernetes/cloudInit.ts';
import { ProviderError } from './providerError.ts';
import { specHash } from './vm/specHash.ts';

/** A missing Secret is a fact, not a failure; a deletion reads no Secret at all (design §4). */
export const claimProxy: Step<ClaimProxyInput, ClaimProxyResult> = async (
  deps,
  context,
  { ref },
) => {
  const found = await deps.kubernetes.get(ref);
  if (found === null) return { found: false };
  const claimed = isDeleting(found) || found.metadata.finalizers.includes(finalizer);
  // Read again after the claim: a deletion may have come first, and then the claim had no effect.
  const proxy = claimed ? found : await claim(deps, ref);
  if (proxy === null) return { found: false };
  const firstClaim = !claimed && !isDeleting(proxy) && isUntouched(proxy);
  if (!claimed) context.log.info({ firstClaim }, 'proxy claimed');
  const cloudInit = await hashCloudInit(deps, proxy);
  return {
    found: true,
    deleting: isDeleting(proxy),
    firstClaim,
    desired: desiredOf(proxy, { ...cloudInit, providerProblem: providerProblem(deps, proxy) }),
    recorded: recordedIn(proxy),
  };
};

async function claim(deps: StepDeps, ref: ClaimProxyInput['ref']): Promise<Proxy | null> {
  try {
    await deps.kubernetes.addFinalizer(ref);
  } catch (error) {
    if (error instanceof ProviderError && error.facts.reason === 'ObjectGone') return null;
    throw error;
  }
  return await deps.kubernetes.get(ref);
}

/** No status of an earlier run: somebody who took our finalizer away by hand does not make an old Proxy new. */
function isUntouched({ status }: Proxy): boolean {
  return status.vmid === null && status.phase === null && !status.everReady;
}

interface CloudInitHash {
  specHash: string | null;
  cloudInitProblem: string | null;
}

async function hashCloudInit(deps: StepDeps, proxy: Proxy): Promise<CloudInitHash> {
  if (isDeleting(proxy) && proxy.spec.cloudInitFrom !== undefined) {
    return { specHash: null, cloudInitProblem: null };
  }
  try {
    const { mode, provider } = proxy.spec;
    const content = await readCloudInit(deps.kubernetes, proxy);
    const hash = specHash({
      mode,
      provider: provider ?? null,
      placement: placementOf(proxy),
      cloudInit: content,
    });
    return { specHash: hash, cloudInitProblem: null };
  } catch (error) {
    if (!(error instanceof ProviderError) || error.facts.reason !== 'CloudInitUnavailable')
      throw error;
    return { specHash: null, cloudInitProblem: error.message };
  }
}

/** A worker serves the providers of its config; a name it does not know may still be another one's. */
function providerProblem({ providers }: StepDeps, { spec }: Proxy): string | null {
  if (spec.mode === 'External') return null;
  try {
    providers.config(spec.provider ?? '');
    return null;
  } catch (error) {
    if (error instanceof ProviderError && error.facts.reason === 'ProviderUnknown') {
      return error.message;
    }
    throw error;
  }
}

function desiredOf(
  proxy: Proxy,
  found: CloudInitHash & { providerProblem: string | null },
): DesiredProxy {
  const { metadata, spec } = proxy;
  return {
    generation: metadata.generation,
    mode: spec.mode,
    provider: spec.provider ?? '',
    placement: placementOf(proxy),
    address: spec.address ?? null,
    port: spec.port,
    drainSeconds: spec.drainSeconds,
    replaceStrategy: spec.replaceStrategy,
    deletionPolicy: spec.deletionPolicy,
    paused: spec.paused,
    ...found,
    retry: metadata.annotations[retryAnnotation] ?? null,
    forceDelete: metadata.annotations[forceDeleteAnnotation] ?? null,
  };
}

function placementOf({ spec }: Proxy): DesiredProxy['placement'] {
  const { region, zone, machineType, image } = spec.placement ?? {};
  return {
    region: region ?? null,
    zone: zone ?? null,
    machineType: machineType ?? null,
    image: image ?? null,
  };
}

function recordedIn({ spec, status }: Proxy): RecordedStatus {
  return {
    vmid: status.vmid,
    node: status.node,
    vmName: status.vmName,
    provider: status.vmid === null ? null : (status.provider ?? spec.provider ?? null),
    specHash: status.specHash,
    ip: status.ip,
    healthy: status.healthy,
    everReady: status.everReady,
    handled: { retry: status.handled.retry, forceDelete: status.handled.forceDelete },
    leftovers: status.leftovers,
    replacement: replacementIn(status),
  };
}

/** A status that does not say on which provider it is, is not enough to find it again. */
function replacementIn({ replacement }: Proxy['status']): RecordedReplacement | null {
  if (replacement === null || replacement.provider === null) return null;
  const { provider, vmid, node, vmName } = replacement;
  return { provider, vmid, node, vmName, specHash: replacement.specHash };
}

function isDeleting({ metadata }: Proxy): boolean {
  return metadata.deletionTimestamp !== undefined;
}
