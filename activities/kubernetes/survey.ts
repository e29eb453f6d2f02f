/** Every Proxy there is right now, read from the API server and from no cache: what is missing here has no Proxy. */
import { z } from 'zod';
import type { Leftover, ProxyRef } from '../../workflows/contract/proxy.ts';
import { ProviderError } from '../providerError.ts';
import type { KubernetesClient } from './client.ts';
import { listAttempt, listKept, proxyPageSize } from './proxyList.ts';
import { unanswered } from './refusal.ts';

export interface SurveyedProxy {
  ref: ProxyRef;
  leftovers: Leftover[];
}

export interface Survey {
  /** resourceVersion of the list: the same for all of its pages. */
  version: string;
  proxies: SurveyedProxy[];
}

/** Complete or an error: throws Transient `KubernetesUnavailable`, also when the kind itself is missing. */
export type TakeSurvey = () => Promise<Survey>;

const leftover = z.object({
  provider: z.string(),
  vmid: z.int(),
  node: z.string(),
  upid: z.string().default(''),
  reason: z.string().default(''),
});
const surveyed = z.object({
  metadata: z.object({ namespace: z.string(), name: z.string(), uid: z.string() }),
  // A status may have been edited by hand; it must not hide that the object exists.
  status: z
    .object({ leftovers: z.array(leftover).catch([]) })
    .nullish()
    .catch(null),
});

/** Without a `resourceVersion` the API server answers with its newest state. */
export function surveyOf(client: KubernetesClient): TakeSurvey {
  return async () => {
    try {
      const { resourceVersion, objects } = await listKept(client, proxyPageSize, asSurveyed);
      return { version: resourceVersion, proxies: objects };
    } catch (error) {
      throw error instanceof ProviderError ? error : unanswered(listAttempt, error);
    }
  };
}

function asSurveyed(object: unknown): SurveyedProxy {
  const { metadata, status } = surveyed.parse(object);
  const { namespace, name, uid } = metadata;
  return { ref: { namespace, name, uid }, leftovers: status?.leftovers ?? [] };
}
