/** Which Proxies may wait for a provider, as their objects say. Pure. */
import { z } from 'zod';

const listedProxies = z.array(
  z.object({
    metadata: z.object({
      uid: z.string(),
      generation: z.number().nullish(),
      deletionTimestamp: z.string().nullish(),
    }),
    spec: z.object({ provider: z.string().nullish() }),
    status: z
      .object({
        phase: z.string().nullish(),
        provider: z.string().nullish(),
        observedGeneration: z.number().nullish(),
        conditions: z.array(z.object({ type: z.string(), status: z.string() })).nullish(),
      })
      .nullish(),
  }),
);
type ListedProxy = z.output<typeof listedProxies>[number];

/**
 * UIDs of those that another try may help, of a list of Proxy objects. One that is Ready may wait, too: for the VM of its new
 * spec, or for the removal of an old one. Where that one is no status tells, so an edited Proxy that is busy with
 * something is among them whatever its provider is now. Throws ZodError when the list holds anything else.
 */
export function waitingFor(provider: string, objects: readonly unknown[]): string[] {
  return listedProxies
    .parse(objects)
    .filter((proxy) => isWaiting(proxy) && mayConcern(provider, proxy))
    .map(({ metadata }) => metadata.uid);
}

/** Something is under way or in the way; a spec that the status does not speak of yet may be. */
function isWaiting({ metadata, status }: ListedProxy): boolean {
  if (metadata.deletionTimestamp || status?.phase !== 'Ready') return true;
  if (status.observedGeneration !== metadata.generation) return true;
  return ['Reconciling', 'Stalled'].some((type) => holds(status.conditions ?? [], type));
}

function mayConcern(provider: string, { metadata, spec, status }: ListedProxy): boolean {
  // External ones have none.
  if (!spec.provider) return false;
  if (spec.provider === provider || status?.provider === provider) return true;
  // One that was never edited has left no other provider.
  const edited = (metadata.generation ?? 1) > 1;
  return edited && holds(status?.conditions ?? [], 'Reconciling');
}

function holds(conditions: readonly { type: string; status: string }[], type: string): boolean {
  return conditions.some((one) => one.type === type && one.status === 'True');
}
