/** Whether cloud-init from a Secret is other than the status says. The content goes nowhere but into the hash. */
import type { Proxy } from '../../api/proxy.ts';
import type { StepDeps } from '../deps.ts';
import { wantedSpec } from '../facts/wantedSpec.ts';
import { ProviderError } from '../providerError.ts';
import { conditionOf } from './watched.ts';

/** Inline cloud-init is part of the object, whose changes the controller tells. Throws what reading a Secret throws. */
export async function cloudInitNews(deps: StepDeps, proxy: Proxy): Promise<boolean> {
  if (proxy.spec.cloudInitFrom === undefined) return false;
  const shownMissing = conditionOf(proxy, 'CloudInitAvailable')?.status === 'False';
  try {
    const { specHash } = await wantedSpec(deps, proxy);
    return shownMissing || specHash !== proxy.status.desiredSpecHash;
  } catch (error) {
    if (!(error instanceof ProviderError) || error.facts.reason !== 'CloudInitUnavailable') {
      throw error;
    }
    return !shownMissing;
  }
}
