/** The `provider` workflow: rounds of checks, what they publish, and when the provider is gone. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeCluster, tellProvider } from '../support/providerStory.ts';
import { useWorkflowServer } from '../support/workflowHarness.ts';

useWorkflowServer();

const soon = { intervalMs: 200, timeoutMs: 5_000 };

describe('a provider that is served', () => {
  it('has every node checked at once, and shows them in the order of the config', () =>
    tellProvider(
      new FakeCluster({ nodes: ['c', 'a', 'b'], ...soon }),
      async ({ cluster, untilShown }) => {
        cluster.together = 3;
        await untilShown('c Reachable, a Reachable, b Reachable');
        cluster.troubles.set('a', 'StorageNotFound');
        await untilShown('c Reachable, a StorageNotFound, b Reachable');
        cluster.troubles.clear();
        await untilShown('c Reachable, a Reachable, b Reachable');
      },
      { realTime: true },
    ));

  it('has nodes that came with an edit of the config checked in the same round, and shows no removed ones', () =>
    tellProvider(
      new FakeCluster({ nodes: ['a', 'b'], ...soon }),
      async ({ cluster, until, untilShown }) => {
        await untilShown('a Reachable, b Reachable');
        cluster.settings = { ...cluster.settings, nodes: ['d', 'b'] };
        await untilShown('d Reachable, b Reachable');
        const lists = cluster.published.map((targets) => targets?.map(({ name }) => name).join());
        assert.ok(
          lists.every((list) => list === 'a,b' || list === 'd,b'),
          lists.join(' '),
        );
        const from = cluster.checks.length;
        await until(() => cluster.checks.length >= from + 4, 'another round');
        assert.ok(!cluster.checks.slice(from + 2).includes('a'));
      },
      { realTime: true },
    ));

  it('is checked at once when it is told that something changed, else after the interval', () =>
    tellProvider(
      new FakeCluster({ nodes: ['a'], intervalMs: 3_600_000 }),
      async ({ cluster, handle, untilShown }) => {
        await untilShown('a Reachable');
        cluster.troubles.set('a', 'Unauthorized');
        await handle.signal('providerChanged');
        await untilShown('a Unauthorized');
        assert.deepEqual(cluster.checks, ['a', 'a']);
      },
    ));

  it('is published with what the next round finds when Kubernetes was away', () =>
    tellProvider(
      new FakeCluster({ nodes: ['a'], ...soon }),
      async ({ cluster, untilShown, until }) => {
        cluster.refusals.push({ reason: 'KubernetesUnavailable', scope: 'proxy' });
        await until(() => cluster.refusals.length === 0, 'a refused publication');
        await untilShown('a Reachable');
      },
      { realTime: true },
    ));

  it('goes on in a fresh run before the history grows large, with what it knew', () =>
    tellProvider(
      new FakeCluster({ nodes: ['a'], intervalMs: 50, timeoutMs: 5_000 }),
      async ({ cluster, server, handle, until }) => {
        await until(() => cluster.published.length > 10, 'many rounds');
        const now = await server.client.workflow.getHandle(handle.workflowId).describe();
        assert.notEqual(now.runId, handle.firstExecutionRunId);
        assert.equal(now.status.name, 'RUNNING');
        assert.equal(cluster.shown(), 'a Reachable');
      },
      { suggestContinueAsNewAt: 40 },
    ));
});

describe('a provider that nobody serves', () => {
  it('says so, and after ten minutes its ProviderHealth and its workflow are gone', () =>
    tellProvider(new FakeCluster(), async ({ cluster, handle, untilShown }) => {
      await untilShown('a Reachable, b Reachable');
      cluster.known = false;
      // The test server skips time while somebody waits for the result.
      await handle.result();
      const { events } = await handle.fetchHistory();
      const secondsOf = (index: number): number => Number(events?.at(index)?.eventTime?.seconds);
      const lasted = secondsOf(-1) - secondsOf(0);
      assert.ok(lasted >= 600 && lasted < 800, `${lasted} s`);
      assert.equal(cluster.published.at(-1), null);
      const meanwhile = cluster.published.slice(1, -1);
      assert.ok(meanwhile.length >= 9, `${meanwhile.length} rounds`);
      for (const targets of meanwhile) {
        assert.deepEqual(
          targets?.map(({ name, ready, reason }) => [name, ready, reason]),
          [
            ['a', false, 'ProviderNotServed'],
            ['b', false, 'ProviderNotServed'],
          ],
        );
      }
    }));

  it('is not gone while a worker still polls for it without knowing it, for less than ten minutes', () =>
    tellProvider(
      new FakeCluster({ nodes: ['a'], ...soon }),
      async ({ cluster, handle, untilShown }) => {
        await untilShown('a Reachable');
        cluster.known = false;
        await untilShown('a ProviderNotServed');
        const [target] = cluster.published.at(-1) ?? [];
        assert.match(target?.message ?? '', /ProviderUnknown; start a worker that has it$/);
        assert.deepEqual(target?.details, { pveVersion: '9.2.11' });
        assert.equal(target?.checkedAt, '2026-11-29T12:00:00Z');
        cluster.known = true;
        await untilShown('a Reachable');
        assert.equal((await handle.describe()).status.name, 'RUNNING');
      },
      { realTime: true },
    ));
});
