/** Writes what the checks of a provider saw into its ProviderHealth, and wakes Proxies that waited for it. */
import type {
  PublishHealthInput,
  PublishHealthResult,
} from '../workflows/contract/providerSteps.ts';
import type { HealthDeps, StepContext } from './deps.ts';
import { recoveredTargets, targetEvents, withTargets } from './kubernetes/healthStatus.ts';

/**
 * Throws Transient `KubernetesUnavailable`. The Proxies are told first: told twice is better than never. Of a provider
 * that is not served any more the object goes (`targets: null`), but not with an alarm in it: who serves the provider
 * again is still to know it.
 */
export const publishHealth = async (
  deps: HealthDeps,
  context: StepContext,
  { provider, targets }: PublishHealthInput,
): Promise<PublishHealthResult> => {
  const { health, clock } = deps;
  if (targets === null) {
    const { alarms } = deps;
    if (
      (await alarms.read(provider)) !== null ||
      (await alarms.readCollection(provider)) !== null
    ) {
      context.log.info('provider not served any more, ProviderHealth kept for its alarm');
      return { recovered: [] };
    }
    await health.remove(provider);
    context.log.info('provider not served any more, ProviderHealth removed');
    return { recovered: [] };
  }
  const before = await health.get(provider);
  const recovered = recoveredTargets(before, targets);
  if (recovered.length > 0) await deps.wakeProxies(provider);
  const now = new Date(clock.now());
  await health.update(provider, (status) => withTargets(status, targets, now));
  for (const event of targetEvents(before, targets)) {
    const { reason, message } = event;
    context.log.info({ reason, message }, 'provider target changed');
    // Nobody needs an Event so much that what was published should count as lost.
    await health.recordEvent(provider, event).catch((error: unknown) => {
      context.log.warn({ err: error, reason }, 'event not recorded');
    });
  }
  return { recovered };
};
