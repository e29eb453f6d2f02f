/** Shows the collection of orphans in the ProviderHealth: `status.orphans` and Events. */
import { hostname } from 'node:os';
import type { Logger } from 'pino';
import { z } from 'zod';
import { apiVersion } from '../../api/proxy.ts';
import { providerHealthKind, providerHealthPlural } from '../../api/providerHealth.ts';
import type { ProxyEvent } from '../../workflows/contract/proxy.ts';
import type { KubernetesAnswer, KubernetesClient, KubernetesRequest } from './client.ts';
import { sendEvent } from './events.ts';
import { refused, unanswered, type Attempt } from './refusal.ts';

/** What a ProviderHealth shows of the collection, `status.orphans`. */
export interface ShownOrphans {
  vms: number;
  seeds: number;
  leftovers: number;
  /** Id of the alarm that holds everything up; absent: what is shown stays. */
  alarm?: string | null;
  /** The alarm, or why the last round could not look. */
  message: string;
  /** RFC 3339. */
  lastRound: string;
}

/** Throws Transient `KubernetesUnavailable`. */
export type ShowOrphans = (
  provider: string,
  shown: ShownOrphans,
  events: readonly ProxyEvent[],
) => Promise<void>;

const collection = `/apis/${apiVersion}/${providerHealthPlural}`;
const identified = z.object({ metadata: z.object({ uid: z.string() }) });

/** Where there is no such object nothing is shown. An Event that could not be recorded is a line in the log, no more. */
export function showOrphans(client: KubernetesClient, log: Logger): ShowOrphans {
  return async (provider, shown, events) => {
    const attempt: Attempt = {
      verb: 'patch',
      object: `status of ProviderHealth ${provider}`,
      rule: 'providerhealths/status: patch',
    };
    const patch: KubernetesRequest = {
      method: 'PATCH',
      path: `${collection}/${provider}/status`,
      body: { status: { orphans: shown } },
    };
    const answer = await ask(client, attempt, patch);
    // It comes and goes with the provider; the last rounds of one that left must not bring it back.
    if (answer.status === 404) return;
    if (answer.status !== 200) throw refused(attempt, answer);
    const { uid } = identified.parse(answer.body).metadata;
    const about = { kind: providerHealthKind, namespace: null, name: provider, uid };
    for (const event of events) {
      try {
        await sendEvent(client, about, event, hostname(), new Date());
      } catch (error) {
        log.warn({ err: error, provider, reason: event.reason }, 'event not recorded');
      }
    }
  };
}

async function ask(
  client: KubernetesClient,
  attempt: Attempt,
  request: KubernetesRequest,
): Promise<KubernetesAnswer> {
  try {
    return await client.send(request);
  } catch (error) {
    throw unanswered(attempt, error);
  }
}
