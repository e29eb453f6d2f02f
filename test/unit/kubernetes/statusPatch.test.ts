import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { statusPatch } from '../../../activities/kubernetes/statusPatch.ts';
import { aCondition, aStatus } from '../../support/aStatus.ts';

const now = new Date('2026-01-02T03:04:05.678Z');
const earlier = '2025-12-31T00:00:00Z';

/** What the API server stores after a merge patch of an empty status. */
function storedAfter(status: ReturnType<typeof aStatus>): Record<string, unknown> {
  return statusPatch({}, status, new Date(earlier)) ?? {};
}

describe('statusPatch', () => {
  it('sends nothing when the status already reads so', () => {
    const status = aStatus({
      vmid: 100123,
      conditions: [aCondition()],
      timings: { cloneTemplate: 4 },
    });
    assert.equal(statusPatch(storedAfter(status), status, now), null);
  });

  it('takes an absent field, null, an empty text and an empty list for the same', () => {
    assert.equal(
      statusPatch(
        { phase: 'Provisioning', workflowID: 'proxy-uid', observedGeneration: 1, everReady: false },
        aStatus(),
        now,
      ),
      null,
    );
  });

  it('sends only what differs', () => {
    const patch = statusPatch(
      storedAfter(aStatus()),
      aStatus({ phase: 'Running', ip: '10.0.0.7' }),
      now,
    );
    assert.deepEqual(patch, { phase: 'Running', ip: '10.0.0.7' });
  });

  it('removes what no longer holds, inside of maps too', () => {
    const before = storedAfter(
      aStatus({
        ip: '10.0.0.7',
        timings: { cloneTemplate: 4, startVm: 1 },
        replacement: {
          provider: 'pve',
          vmid: 1,
          node: 'a',
          vmName: 'n',
          ip: '10.0.0.8',
          specHash: 'h',
        },
      }),
    );
    assert.deepEqual(statusPatch(before, aStatus({ timings: { startVm: 2 } }), now), {
      ip: null,
      replacement: null,
      timings: { startVm: 2, cloneTemplate: null },
    });
  });

  it('moves lastTransitionTime with the status of a condition only', () => {
    const before = storedAfter(
      aStatus({ conditions: [aCondition(), aCondition({ type: 'Healthy' })] }),
    );
    const patch = statusPatch(
      before,
      aStatus({
        conditions: [
          aCondition({ reason: 'WaitingForLock', message: 'locked' }),
          aCondition({ type: 'Healthy', status: 'True' }),
        ],
      }),
      now,
    );
    assert.deepEqual(patch, {
      conditions: [
        {
          type: 'Ready',
          status: 'False',
          reason: 'WaitingForLock',
          message: 'locked',
          observedGeneration: 1,
          lastTransitionTime: earlier,
        },
        {
          type: 'Healthy',
          status: 'True',
          reason: 'Provisioning',
          observedGeneration: 1,
          lastTransitionTime: '2026-01-02T03:04:05Z',
        },
      ],
    });
  });

  it('keeps the conditions of others and drops its own that no longer hold', () => {
    const foreign = { type: 'Audited', status: 'True', reason: 'Policy', observedGeneration: 7 };
    const before = storedAfter(aStatus({ conditions: [aCondition({ type: 'Stalled' })] }));
    const stored = Array.isArray(before['conditions']) ? before['conditions'] : [];
    const patch = statusPatch({ ...before, conditions: [foreign, ...stored] }, aStatus(), now);
    assert.deepEqual(patch, { conditions: [foreign] });
  });

  it('does not touch fields it does not know', () => {
    const before = { ...storedAfter(aStatus()), somebodyElses: 'value' };
    assert.equal(statusPatch(before, aStatus(), now), null);
  });

  it('rebuilds a status whose conditions somebody ruined', () => {
    const patch = statusPatch({ conditions: 'none' }, aStatus({ conditions: [aCondition()] }), now);
    assert.ok(Array.isArray(patch?.['conditions']));
  });
});
