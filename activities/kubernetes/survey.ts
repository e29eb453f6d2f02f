/** Every Proxy there is right now, read from the API server and from no cache: what is missing here has no Proxy. */
import { z } from 'zod';
import type { Leftover, ProxyRef } from '../../workflows/contract/proxy.ts';
import type { KubernetesAnswer, KubernetesClient } from './client.ts';
import { refused, unanswered, type Attempt } from './refusal.ts';
import { allProxiesPath } from './kubernetesRecords.ts';
import { proxyPageSize } from './proxyList.ts';

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
const list = z.object({
  metadata: z.object({ resourceVersion: z.string(), continue: z.string().optional() }),
  items: z.array(
    z.object({
      metadata: z.object({ namespace: z.string(), name: z.string(), uid: z.string() }),
      // A status may have been edited by hand; it must not hide that the object exists.
      status: z
        .object({ leftovers: z.array(leftover).catch([]) })
        .nullish()
        .catch(null),
    }),
  ),
});
const attempt: Attempt = {
  verb: 'list',
  object: 'the Proxies of all namespaces',
  rule: 'proxies: list',
};

/** Lists page by page; without a `resourceVersion` the API server answers with its newest state. */
export function surveyOf(client: KubernetesClient): TakeSurvey {
  return async () => {
    const proxies: SurveyedProxy[] = [];
    let next: string | undefined;
    for (;;) {
      const page = list.parse((await ask(client, next)).body);
      for (const { metadata, status } of page.items) {
        const { namespace, name, uid } = metadata;
        proxies.push({ ref: { namespace, name, uid }, leftovers: status?.leftovers ?? [] });
      }
      next = page.metadata.continue;
      if (next === undefined || next === '') {
        return { version: page.metadata.resourceVersion, proxies };
      }
    }
  };
}

async function ask(client: KubernetesClient, next: string | undefined): Promise<KubernetesAnswer> {
  const query = { limit: String(proxyPageSize), ...(next === undefined ? {} : { continue: next }) };
  let answer: KubernetesAnswer;
  try {
    answer = await client.send({ method: 'GET', path: allProxiesPath, query });
  } catch (error) {
    throw unanswered(attempt, error);
  }
  if (answer.status !== 200) throw refused(attempt, answer);
  return answer;
}
