import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { kubernetesAlarms } from '../../../activities/kubernetes/absenceAlarm.ts';
import type { KubernetesClient } from '../../../activities/kubernetes/client.ts';
import { showOrphans } from '../../../activities/kubernetes/orphanBoard.ts';
import { ProviderError } from '../../../activities/providerError.ts';

const counts = { vms: 1, seeds: 0, leftovers: 0, message: '', lastRound: '2026-11-29T19:30:00Z' };

/** One ProviderHealth `pve`, changed by merge patches of `status.orphans`. */
function oneHealth(orphans: Record<string, unknown>): KubernetesClient {
  let body: unknown = { metadata: { uid: 'u-1' }, status: { orphans } };
  return {
    send: async ({ method, path, body: patch }) => {
      if (!/\/pve(\/status)?$/.test(path)) return { status: 404, body: {} };
      if (method === 'PATCH') {
        const sent: { status: { orphans: object } } = JSON.parse(JSON.stringify(patch));
        Object.assign(orphans, sent.status.orphans);
        body = { metadata: { uid: 'u-1' }, status: { orphans } };
      }
      return { status: 200, body };
    },
    stream: () => Promise.reject(new Error('nothing is watched here')),
    close: async () => undefined,
  };
}

describe('the alarm of the collection in the ProviderHealth', () => {
  const log = pino({ enabled: false });

  it('is read as it is shown, stays when a round does not speak of it, and ends with null', async () => {
    const client = oneHealth({});
    const alarms = kubernetesAlarms(client);
    const show = showOrphans(client, log);
    assert.equal(await alarms.readCollection('pve'), null);
    await show('pve', { ...counts, alarm: 'rollback-1' }, []);
    assert.equal(await alarms.readCollection('pve'), 'rollback-1');
    await show('pve', counts, []);
    assert.equal(await alarms.readCollection('pve'), 'rollback-1');
    await show('pve', { ...counts, alarm: null }, []);
    assert.equal(await alarms.readCollection('pve'), null);
    assert.equal(await alarms.readCollection('other'), null, 'there is no such object');
  });

  it('is not taken for ended when Kubernetes refuses to tell', async () => {
    const refusing = { ...oneHealth({}), send: async () => ({ status: 403, body: {} }) };
    await assert.rejects(
      kubernetesAlarms(refusing).readCollection('pve'),
      (error) => error instanceof ProviderError && error.facts.reason === 'KubernetesUnavailable',
    );
  });
});
