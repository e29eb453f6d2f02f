/** What a ProviderHealth says after rounds of checks, and whom that wakes. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { publishHealth } from '../../activities/publishHealth.ts';
import { withCondition } from '../../activities/kubernetes/healthStatus.ts';
import type { HealthDeps } from '../../activities/deps.ts';
import type { ProviderHealthStatus } from '../../api/providerHealth.ts';
import type { PublishHealthResult, TargetHealth } from '../../workflows/contract/providerSteps.ts';
import { healthRig, type HealthRig } from '../support/healthRig.ts';
import { withSteps } from '../support/stepHarness.ts';

interface Board extends HealthRig {
  /** Publishes at a minute of the hour. */
  publish: (minute: number, ...targets: TargetHealth[]) => Promise<PublishHealthResult>;
  status: () => ProviderHealthStatus;
}

function withBoard(body: (board: Board) => Promise<void>): Promise<void> {
  return withSteps(async (rig) => {
    const health = healthRig(rig);
    await body({
      ...health,
      publish: (minute, ...targets) => {
        const clock = { ...rig.deps.clock, now: () => Date.UTC(2026, 10, 29, 12, minute) };
        const deps: HealthDeps = { ...health.deps, clock };
        return rig.run((_deps, context) => publishHealth(deps, context, { provider: 'pve', targets }), {}); // prettier-ignore
      },
      status: () => {
        const found = health.health.objects.get('pve');
        assert.ok(found);
        return found;
      },
    });
  });
}

function target(name: string, changes: Partial<TargetHealth> = {}): TargetHealth {
  return {
    name,
    address: 'https://192.0.2.1:8006',
    ready: true,
    reason: 'Reachable',
    message: '',
    latencyMs: 12,
    checkedAt: '2026-11-29T12:00:30Z',
    details: { pveVersion: '9.2.11' },
    ...changes,
  };
}
const down = { ready: false, reason: 'Unreachable', message: 'no route' } as const;

describe('publishHealth', () => {
  it('shows targets in the order they come in, how many are ready, and the first reason that is none', () =>
    withBoard(async ({ publish, status }) => {
      await publish(1, target('c'), target('a', down), target('b', { ...down, reason: 'Timeout' }));
      const { type, ready, reason, targets } = status();
      assert.deepEqual([type, ready, reason], ['proxmox', '1/3', 'Unreachable']);
      assert.deepEqual(targets[1], {
        name: 'a',
        address: 'https://192.0.2.1:8006',
        ready: false,
        reason: 'Unreachable',
        message: 'no route',
        latencyMs: 12,
        lastChecked: '2026-11-29T12:00:30Z',
        lastTransition: '2026-11-29T12:01:00Z',
        details: { pveVersion: '9.2.11' },
      });
      await publish(2, target('c'));
      assert.deepEqual([status().ready, status().reason], ['1/1', 'Reachable']);
      assert.equal(status().targets.length, 1);
    }));

  it('moves lastTransition with ready only, and lastChecked when somebody checked', () =>
    withBoard(async ({ publish, status }) => {
      await publish(1, target('a'));
      await publish(2, target('a', { checkedAt: '2026-11-29T12:01:30Z' }));
      const times = (): (string | null | undefined)[] => {
        const [first] = status().targets;
        return [first?.lastTransition, first?.lastChecked];
      };
      assert.deepEqual(times(), ['2026-11-29T12:01:00Z', '2026-11-29T12:01:30Z']);
      await publish(3, target('a', { ...down, checkedAt: null }));
      assert.deepEqual(times(), ['2026-11-29T12:03:00Z', '2026-11-29T12:01:30Z']);
      await publish(4, target('a', { ...down, reason: 'Timeout' }));
      assert.equal(times()[0], '2026-11-29T12:03:00Z');
      await publish(5, target('a'));
      assert.equal(times()[0], '2026-11-29T12:05:00Z');
    }));

  it('leaves what others wrote into the object', () =>
    withBoard(async ({ publish, status, health }) => {
      const rejected = { type: 'ConfigValid', status: 'False', reason: 'Rejected', message: 'x' } as const; // prettier-ignore
      await health.update('pve', (one) => withCondition(one, rejected, new Date(0)));
      await publish(1, target('a'));
      assert.deepEqual(
        status().conditions.map(({ type, status: is, lastTransitionTime }) => [type, is, lastTransitionTime]), // prettier-ignore
        [['ConfigValid', 'False', '1970-01-01T00:00:00Z']],
      );
    }));

  it('wakes the Proxies of the provider when a target becomes ready, and only then', () =>
    withBoard(async ({ publish, woken }) => {
      assert.deepEqual(await publish(1, target('a', down), target('b', down)), { recovered: [] });
      assert.deepEqual(woken, []);
      assert.deepEqual(await publish(2, target('a'), target('b', down)), { recovered: ['a'] });
      assert.deepEqual(woken, ['pve']);
      assert.deepEqual(await publish(3, target('a'), target('b', down)), { recovered: [] });
      assert.deepEqual(await publish(4, target('a', down), target('b', down)), { recovered: [] });
      assert.deepEqual(woken, ['pve']);
      await publish(5, target('a'), target('b'), target('c'));
      assert.deepEqual(woken, ['pve', 'pve']);
    }));

  it('records an Event for every node that changes, and goes on when it cannot', () =>
    withBoard(async ({ publish, health, status }) => {
      await publish(1, target('a'), target('b', down));
      await publish(2, target('a', down), target('b', down));
      await publish(3, target('a', { ...down, reason: 'Timeout' }), target('b', down));
      await publish(4, target('a'), target('b', down));
      assert.deepEqual(health.events, [
        'Warning Unreachable node b: no route',
        'Warning Unreachable node a: no route',
        'Warning Timeout node a: no route',
        'Normal Reachable node a: VMs can be made there again',
      ]);
      health.refusesEvents = true;
      await publish(5, target('a', down), target('b'));
      assert.equal(status().ready, '1/2');
    }));

  it('takes the object away with its provider, also when there is none', () =>
    withSteps(async (rig) => {
      const { deps, health } = healthRig(rig);
      await health.update('pve', (status) => status);
      for (const provider of ['pve', 'never']) {
        await rig.run((_deps, context) => publishHealth(deps, context, { provider, targets: null }), {}); // prettier-ignore
      }
      assert.deepEqual([...health.objects.keys()], []);
    }));

  it('keeps the object of a provider that left while an alarm stands in it', () =>
    withSteps(async (rig) => {
      const { deps, health } = healthRig(rig);
      await health.update('pve', (status) => status);
      const alarm = {
        id: '0badcafe',
        since: '2026-11-29T20:00:00Z',
        message: 'x',
        vmids: [100_000],
      };
      await deps.alarms.write('pve', alarm);
      await rig.run((_deps, context) => publishHealth(deps, context, { provider: 'pve', targets: null }), {}); // prettier-ignore
      assert.deepEqual([...health.objects.keys()], ['pve']);
    }));
});

describe('a condition of ProviderHealth', () => {
  it('is replaced by type, and its time moves with its status only', () =>
    withBoard(async ({ health, status }) => {
      const write = (is: 'True' | 'False', reason: string, atMs: number): Promise<void> =>
        health.update(
          'pve',
          (one) =>
          withCondition(one, { type: 'ConfigValid', status: is, reason, message: '' }, new Date(atMs)), // prettier-ignore
        );
      const read = (): unknown =>
        status().conditions.map(({ reason, lastTransitionTime }) => [reason, lastTransitionTime]);
      await write('False', 'Rejected', 0);
      await write('False', 'Again', 60_000);
      assert.deepEqual(read(), [['Again', '1970-01-01T00:00:00Z']]);
      await write('True', 'Accepted', 120_000);
      assert.deepEqual(read(), [['Accepted', '1970-01-01T00:02:00Z']]);
    }));
});
