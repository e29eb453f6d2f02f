import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { stopVm } from '../../activities/stopVm.ts';
import { waitBudgets } from '../../workflows/contract/budgets.ts';
import { powerOff } from '../simulator/power.ts';
import { aWatchedProxy } from '../support/aWatchedProxy.ts';
import { eventually } from '../support/eventually.ts';
import { budgetScale, onWatch, placed, proxiesOf, workflowOf } from '../support/onWatch.ts';
import { removing } from '../support/removals.ts';
import { stepFixture } from '../support/stepFixture.ts';
import { hashOf, type StepRig } from '../support/stepHarness.ts';

describe('watchVms', () => {
  it('tells nobody while all VMs are as their statuses say', () =>
    onWatch(async ({ told, rounds }) => {
      await rounds(4);
      assert.deepEqual(told, []);
    }, proxiesOf(3)));

  it('tells the one Proxy whose VM stopped, once', () =>
    onWatch(async ({ rig, proxies, told, rounds }) => {
      const vm = rig.simulator.cluster.vms.get(100_002);
      assert.ok(vm);
      powerOff(rig.simulator.core, vm);
      rig.simulator.refreshStats();
      await eventually(() => told.length === 1);
      await rounds(4);
      assert.deepEqual(
        told.map(({ workflowId }) => workflowId),
        proxies.slice(1, 2).map(workflowOf),
      );
    }, proxiesOf(3)));

  it('sends as many requests for many Proxies as for one, over one socket', async () => {
    const perRound = async (count: number): Promise<number> => {
      let requests = 0;
      await onWatch(async ({ rig, rounds, listings }) => {
        await rounds(1);
        const [before, rounded] = [rig.simulator.requests.length, listings()];
        await rounds(10);
        requests = (rig.simulator.requests.length - before) / (listings() - rounded);
      }, proxiesOf(count));
      return requests;
    };
    const [one, many] = [await perRound(1), await perRound(40)];
    assert.ok(many <= one * 1.2, `${many} requests a round for 40, ${one} for 1`);
  });

  it('brakes when all VMs vanish at once, and goes on when a person confirms it', () =>
    onWatch(async ({ rig, proxies, told, rounds }) => {
      rig.simulator.cluster.vms.delete(100_001);
      rig.simulator.cluster.vms.delete(100_002);
      await eventually(async () => (await rig.deps.alarms.read('pve')) !== null);
      await rounds(4);
      assert.deepEqual(told, []);
      const alarm = await rig.deps.alarms.read('pve');
      assert.deepEqual(alarm?.vmids, [100_001, 100_002]);
      rig.configure({ confirmAbsence: alarm?.id });
      await eventually(() => told.length === 2);
      assert.deepEqual(
        told.map(({ workflowId }) => workflowId),
        proxies.map(workflowOf),
      );
    }, proxiesOf(2)));

  it('keeps the alarm when the Proxies of the missing VMs are deleted, and a deletion waits for it', () =>
    onWatch(async ({ rig, proxies, told, rounds }) => {
      rig.simulator.cluster.vms.delete(100_001);
      rig.simulator.cluster.vms.delete(100_002);
      await eventually(async () => (await rig.deps.alarms.read('pve')) !== null);
      proxies.splice(0, 2, aWatchedProxy(1, { phase: 'Deleting' }));
      await rounds(4);
      rig.records.markDeleting(rig.ref);
      const error = await rig.refusal(stopVm, removing(rig));
      assert.equal(error.facts.reason, 'MassAbsence');
      assert.deepEqual(told, []);
    }, proxiesOf(2)));

  it('writes an alarm that stands again when its ProviderHealth is removed', () =>
    onWatch(async ({ rig, told, rounds }) => {
      rig.simulator.cluster.vms.delete(100_001);
      rig.simulator.cluster.vms.delete(100_002);
      await eventually(async () => (await rig.deps.alarms.read('pve')) !== null);
      const alarm = await rig.deps.alarms.read('pve');
      await rounds(1);
      await rig.deps.alarms.write('pve', null);
      await eventually(async () => (await rig.deps.alarms.read('pve')) !== null);
      assert.deepEqual(await rig.deps.alarms.read('pve'), alarm);
      assert.deepEqual(told, []);
    }, proxiesOf(2)));

  it('raises the alarm for Proxies under deletion when another cluster answers, and tells them nothing', () =>
    onWatch(
      async ({ rig, told, rounds }) => {
        await eventually(async () => (await rig.deps.alarms.read('pve')) !== null);
        await rounds(4);
        assert.deepEqual(told, []);
      },
      () => [aWatchedProxy(1, { phase: 'Deleting', node: 'lost' })],
    ));

  it('raises no alarm for VMs that a deletion destroyed', () =>
    onWatch(
      async ({ rig, rounds }) => {
        await rounds(4);
        assert.equal(await rig.deps.alarms.read('pve'), null);
      },
      () => [1, 2, 3].map((n) => aWatchedProxy(n, { phase: 'Deleting' })),
    ));

  it('ends the alarm when the VMs are back', () =>
    onWatch(async ({ rig, told }) => {
      const { vms } = rig.simulator.cluster;
      const kept = [...vms];
      vms.clear();
      await eventually(async () => (await rig.deps.alarms.read('pve')) !== null);
      for (const [vmid, vm] of kept) vms.set(vmid, vm);
      await eventually(async () => (await rig.deps.alarms.read('pve')) === null);
      assert.deepEqual(told, []);
    }, proxiesOf(3)));

  it('concludes nothing from a listing that shrank with the rights of the token', () =>
    onWatch(async ({ rig, told, rounds }) => {
      rig.simulator.core.access.removePath('/');
      rig.simulator.cluster.vms.delete(100_001);
      await rounds(4);
      assert.deepEqual(told, []);
      assert.equal(await rig.deps.alarms.read('pve'), null);
    }, proxiesOf(2)));

  it('concludes nothing from a listing without VMs since the right on /vms does not propagate', () => {
    const principal = 'proxy-operator@pve';
    const acls = [{ path: '/vms', principal, role: 'ProxyOperator', propagate: false }];
    return onWatch(
      async ({ rig, told, rounds }) => {
        await rounds(4);
        assert.deepEqual(told, []);
        assert.equal(await rig.deps.alarms.read('pve'), null);
      },
      proxiesOf(2),
      1,
      { fixture: stepFixture({ acls }) },
    );
  });

  it('tells a Proxy whose guest has another address', () =>
    onWatch(
      async ({ rig, proxies, told }) => {
        const vm = rig.simulator.cluster.vms.get(100_001);
        assert.ok(vm?.running);
        vm.running.address = '192.0.2.77';
        await eventually(() => told.length > 0);
        const [first] = proxies;
        assert.ok(first);
        assert.equal(told[0]?.workflowId, workflowOf(first));
      },
      proxiesOf(1),
      0,
    ));

  const asked = (rig: StepRig): number => rig.sent('GET', /\/agent\//).length;
  /** Well before the next regular question is due. */
  const soonMs = 1_000;

  for (const [what, before, after] of [
    ['its probe turned bad', {}, { status: { healthy: false } }],
    ['its VM runs again', { power: 'stopped' }, { power: 'running' }],
  ] as const) {
    it(`asks the agent at once when ${what}`, () =>
      onWatch(
        async ({ rig, proxies, rounds }) => {
          await rounds(2);
          assert.equal(asked(rig), 0);
          proxies[0] = aWatchedProxy(1, after);
          await eventually(() => asked(rig) > 0, soonMs);
        },
        (rig) => [placed(rig, 1, before)[1]],
      ));
  }

  it('tells a Proxy whose agent stays silent, after ten minutes and not before', () =>
    onWatch(
      async ({ rig, told }) => {
        const vm = rig.simulator.cluster.vms.get(100_001);
        assert.ok(vm?.running);
        vm.running.agentUp = false;
        const startedMs = Date.now();
        await eventually(() => told.length > 0, 10_000);
        const waitedMs = Date.now() - startedMs;
        assert.ok(waitedMs >= 0.9 * budgetScale * waitBudgets.agent, `${waitedMs} ms`);
      },
      proxiesOf(1),
      0,
    ));

  it('has a Proxy read again whose Secret changed, and not one whose Secret did not', () =>
    onWatch(
      async ({ reread, proxies }) => {
        await eventually(() => reread.length > 0);
        assert.deepEqual([...new Set(reread)], proxies.slice(1).map(workflowOf));
      },
      (rig) => {
        rig.records.secrets.set('egress/init/user-data', Buffer.from('#cloud-config\n'));
        const cloudInitFrom = { secretKeyRef: { name: 'init', key: 'user-data' } };
        const spec = { cloudInit: undefined, cloudInitFrom };
        const same = hashOf('#cloud-config\n');
        return [
          placed(rig, 1, { spec, status: { desiredSpecHash: same } })[1],
          placed(rig, 2, { spec, status: { desiredSpecHash: 'old' } })[1],
        ];
      },
      0,
    ));

  it('tells the loser of a contested address who keeps it', () =>
    onWatch(
      async ({ told, proxies }) => {
        await eventually(() => told.some(({ news }) => news.heldBy === 'egress/p1'));
        const loser = told.find(({ news }) => news.heldBy !== undefined);
        assert.equal(loser?.workflowId, proxies[1] && workflowOf(proxies[1]));
      },
      (rig) => [placed(rig, 1)[1], placed(rig, 2, { ip: '192.0.2.1' })[1]],
    ));
});
