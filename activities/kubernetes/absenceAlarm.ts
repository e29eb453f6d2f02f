/** The `MassAbsence` alarm of a provider, kept in its ProviderHealth: every worker sees it, and so does a person. */
import { z } from 'zod';
import { apiVersion, group, version } from '../../api/proxy.ts';
import {
  absenceAlarmSchema,
  providerHealthKind,
  providerHealthPlural,
  type AbsenceAlarm,
} from '../../api/providerHealth.ts';
import type { KubernetesClient } from './client.ts';
import { refused, unanswered, type Attempt } from './refusal.ts';

/** Where alarms are kept. */
export interface AbsenceAlarms {
  /** One that cannot be read stands, with the id `unreadable`. Throws Transient `KubernetesUnavailable`. */
  read(provider: string): Promise<AbsenceAlarm | null>;
  /** `null` ends it. Throws Transient `KubernetesUnavailable`. */
  write(provider: string, alarm: AbsenceAlarm | null): Promise<void>;
  /** Id of the alarm of the collection, `status.orphans.alarm`. Throws Transient `KubernetesUnavailable`. */
  readCollection(provider: string): Promise<string | null>;
}

const collection = `/apis/${group}/${version}/${providerHealthPlural}`;
/** What was tampered with, or written by another release, does not let go of the brake: each field has a stand-in. */
const unreadable: AbsenceAlarm = {
  id: 'unreadable',
  since: '1970-01-01T00:00:00Z',
  message: 'the alarm in the ProviderHealth cannot be read',
  vmids: [],
};
const { id, since, message, vmids } = absenceAlarmSchema.shape;
const storedAlarm = z
  .object({
    id: id.catch(unreadable.id),
    since: since.catch(unreadable.since),
    message: message.catch(unreadable.message),
    vmids: vmids.catch(unreadable.vmids),
  })
  .nullable()
  .default(null)
  .catch(unreadable);
const stored = z.object({ status: z.object({ alarm: storedAlarm }).nullish() }).nullable();

const collected = z.object({
  status: z.object({ orphans: z.object({ alarm: z.string().nullish() }).nullish() }).nullish(),
});

/** Alarms in the `status.alarm` of the ProviderHealths. */
export function kubernetesAlarms(client: KubernetesClient): AbsenceAlarms {
  async function ask(
    attempt: Attempt,
    request: Parameters<KubernetesClient['send']>[0],
  ): Promise<{ status: number; body: unknown }> {
    try {
      return await client.send(request);
    } catch (error) {
      throw unanswered(attempt, error);
    }
  }

  /** `null` where there is no such object. */
  async function bodyOf(provider: string): Promise<unknown> {
    const attempt: Attempt = {
      verb: 'get',
      object: `ProviderHealth ${provider}`,
      rule: 'providerhealths: get',
    };
    const answer = await ask(attempt, { method: 'GET', path: `${collection}/${provider}` });
    if (answer.status === 404) return null;
    if (answer.status !== 200) throw refused(attempt, answer);
    return answer.body;
  }

  return {
    read: async (provider) => {
      const parsed = stored.safeParse(await bodyOf(provider));
      return parsed.success ? (parsed.data?.status?.alarm ?? null) : unreadable;
    },
    readCollection: async (provider) => {
      const parsed = collected.safeParse(await bodyOf(provider));
      return parsed.success ? (parsed.data.status?.orphans?.alarm ?? null) : null;
    },
    write: async (provider, alarm) => {
      const attempt: Attempt = {
        verb: 'patch',
        object: `status of ProviderHealth ${provider}`,
        rule: 'providerhealths/status: patch',
      };
      const patch = {
        method: 'PATCH',
        path: `${collection}/${provider}/status`,
        body: { status: { alarm } },
      } as const;
      const answer = await ask(attempt, patch);
      if (answer.status === 200) return;
      if (answer.status !== 404) throw refused(attempt, answer);
      if (alarm === null) return;
      const body = { apiVersion, kind: providerHealthKind, metadata: { name: provider } };
      await ask(attempt, { method: 'POST', path: collection, body });
      const again = await ask(attempt, patch);
      if (again.status !== 200) throw refused(attempt, again);
    },
  };
}
