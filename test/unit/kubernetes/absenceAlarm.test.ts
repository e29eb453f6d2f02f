import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { kubernetesAlarms } from '../../../activities/kubernetes/absenceAlarm.ts';
import type { KubernetesClient } from '../../../activities/kubernetes/client.ts';
import { KubernetesHealthRecords } from '../../../activities/kubernetes/healthRecords.ts';
import { withTargets } from '../../../activities/kubernetes/healthStatus.ts';

/** One ProviderHealth `pve` with this status, which takes merge patches of whole keys. */
function oneHealth(status: Record<string, unknown>): KubernetesClient {
  const body = { metadata: { name: 'pve', uid: 'u-1', resourceVersion: '1' }, status };
  return {
    send: async ({ method, path, body: patch }) => {
      if (!/\/pve(\/status)?$/.test(path)) return { status: 404, body: {} };
      if (method === 'PATCH') {
        const sent: { status: object } = JSON.parse(JSON.stringify(patch));
        Object.assign(status, sent.status);
      }
      return { status: 200, body };
    },
    stream: () => Promise.reject(new Error('nothing is watched here')),
    close: async () => undefined,
  };
}

const alarm = {
  id: '0badcafe',
  since: '2026-11-29T20:00:00Z',
  message: '5 of 5 VMs are missing from one listing',
  vmids: [100_000],
};

describe('the alarm MassAbsence in the ProviderHealth', () => {
  it('is read as it was written, and is none where there is none', async () => {
    const alarms = kubernetesAlarms(oneHealth({}));
    assert.equal(await alarms.read('pve'), null);
    await alarms.write('pve', alarm);
    assert.deepEqual(await alarms.read('pve'), alarm);
    assert.equal(await alarms.read('other'), null, 'there is no such object');
  });

  for (const [what, stored, id] of [
    ['is text', 'all gone', 'unreadable'],
    ['has no id', { since: 'yesterday' }, 'unreadable'],
    ['has VMIDs that are none', { ...alarm, vmids: ['x'] }, alarm.id],
  ] as const) {
    it(`stands also when it ${what}, with an id to confirm it by`, async () => {
      assert.equal((await kubernetesAlarms(oneHealth({ alarm: stored })).read('pve'))?.id, id);
    });
  }

  it('stays when the targets are written, also when it cannot be read', async () => {
    const status: Record<string, unknown> = { alarm: 'all gone', orphans: { alarm: 'x' } };
    const records = new KubernetesHealthRecords(oneHealth(status));
    await records.update('pve', (before) => withTargets(before, [], new Date(0)));
    assert.equal(status.ready, '0/0');
    assert.deepEqual([status.alarm, status.orphans], ['all gone', { alarm: 'x' }]);
  });
});
