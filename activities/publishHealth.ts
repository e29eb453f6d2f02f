/** Writes what the checks of a provider saw into its ProviderHealth, and wakes Proxies that waited for it. */
import type { PublishHealthInput, PublishHealthResult } from '../workflows/contract/steps.ts';
import type { HealthDeps, StepContext } from './deps.ts';
import { recoveredTargets, withTargets } from './kubernetes/healthStatus.ts';

/** Throws Transient `KubernetesUnavailable`. The Proxies are told first: told twice is better than never. */
export const publishHealth = async (
  deps: HealthDeps,
  context: StepContext,
  { provider, targets }: PublishHealthInput,
): Promise<PublishHealthResult> => {
  if (targets === null) {
    await deps.health.remove(provider);
    context.log.info('provider not served any more, ProviderHealth removed');
    return { recovered: [] };
  }
  const recovered = recoveredTargets(await deps.health.get(provider), targets);
  if (recovered.length > 0) await deps.wakeProxies(provider);
  const now = new Date(deps.clock.now());
  await deps.health.update(provider, (status) => withTargets(status, targets, now));
  return { recovered };
};
