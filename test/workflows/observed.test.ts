import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { conditionOf, eventReasons, ip, observed, onReady } from '../support/observedParts.ts';
import { useWorkflowServer } from '../support/workflowHarness.ts';

describe('a Proxy whose VM was seen to differ', () => {
  useWorkflowServer();

  it('does nothing when a fresh look finds it as it should be', async () => {
    await onReady(async (story, vm) => {
      const { world, until, settled } = story;
      let looks = 0;
      world.before('allocateVmid', () => void (looks += 1));
      await observed(story);
      await until(() => looks === 1, 'a look');
      await settled();
      assert.equal(world.status?.phase, 'Ready');
      assert.equal(vm.starts, 1);
      assert.ok(!eventReasons(world).includes('VmStopped'));
    });
  });

  it('follows a VM to another node and stays Ready', async () => {
    await onReady(async (story, vm) => {
      const { world, until } = story;
      vm.node = 'pv1-2';
      await observed(story);
      await until(() => world.status?.node === 'pv1-2', 'the node');
      assert.ok(world.statuses.slice(-2).every(({ phase }) => phase === 'Ready'));
      assert.equal(vm.starts, 1);
      assert.ok(eventReasons(world).includes('VmMoved'));
      assert.equal(world.peak, 1);
      const provisioned = world.status?.conditions.find(({ type }) => type === 'Provisioned');
      assert.deepEqual([provisioned?.status, provisioned?.reason], ['True', 'PlacementDiffers']);
      assert.match(provisioned?.message ?? '', /is on pv1-2, and placement\.zone names pv1-1/);
    });
  });

  it('sets tag and agent option again and leaves the VM running', async () => {
    await onReady(async (story, vm) => {
      const { world, until } = story;
      Object.assign(vm, { untagged: true, agentOff: true });
      await observed(story);
      await until(() => conditionOf(world, 'AgentReachable') === 'False AgentSilent', 'it says so');
      assert.deepEqual([vm.untagged, vm.agentOff, vm.starts], [false, false, 1]);
      assert.equal(world.status?.phase, 'Ready');
    });
  });

  it('keeps the last address while the agent is silent, and shows that', async () => {
    await onReady(async (story, vm) => {
      const { world, until } = story;
      vm.silent = true;
      await observed(story);
      await until(() => conditionOf(world, 'AgentReachable') === 'False AgentSilent', 'it says so');
      assert.deepEqual([world.status?.ip, world.status?.phase], [ip, 'Ready']);
      vm.silent = false;
      await observed(story);
      await until(() => conditionOf(world, 'AgentReachable') === 'True AgentAnswered', 'answered');
    });
  });

  it('follows a changed address, which is probed from nothing', async () => {
    await onReady(async (story, vm) => {
      const { world, until, health } = story;
      vm.ip = '192.0.2.55';
      await observed(story);
      await until(() => world.status?.ip === '192.0.2.55', 'the new address');
      assert.equal(world.status?.phase, 'Running');
      await health(true, '192.0.2.55');
      await until(() => world.status?.phase === 'Ready', 'Ready');
      assert.ok(world.statuses.slice(1).every((status) => status.ip !== null || !status.everReady));
      assert.ok(eventReasons(world).includes('AddressChanged'));
      assert.equal(vm.starts, 1);
    });
  });

  it('only reports a node that does not answer, and goes on when it is back', async () => {
    await onReady(async (story) => {
      const { world, until, health } = story;
      world.deadNodes.add('pv1-1');
      await observed(story);
      await until(() => world.status?.power === 'unreachable', 'unreachable');
      assert.match(world.status?.message ?? '', /node pv1-1 .* does not answer/);
      await health(false);
      await until(() => conditionOf(world, 'Ready') === 'False NodeUnreachable', 'not Ready');
      world.deadNodes.clear();
      await observed(story);
      await until(() => world.status?.power === 'running', 'back');
      await health(true);
      await until(() => world.status?.phase === 'Ready', 'Ready');
      assert.equal(world.peak, 1);
    });
  });

  it('reports an I/O error and leaves the VM alone', async () => {
    await onReady(async (story, vm) => {
      const { world, until } = story;
      vm.ioError = true;
      await observed(story);
      await until(() => world.status?.power === 'io-error', 'reported');
      assert.match(world.status?.message ?? '', /I\/O error.*qm resume/);
      assert.equal(vm.starts, 1);
      vm.ioError = false;
      await observed(story);
      await until(() => world.status?.message === '', 'over');
    });
  });

  it('shows that its VM was taken from it, serves on, and looks again when asked to', async () => {
    await onReady(async (story) => {
      const { world, until, handle } = story;
      const facts = { reason: 'OwnershipConflict', scope: 'provider' } as const;
      world.fail('allocateVmid', { type: 'Permanent', message: 'no mark of ours', facts });
      await observed(story);
      await until(() => conditionOf(world, 'Stalled') === 'True OwnershipConflict', 'told');
      assert.equal(world.status?.phase, 'Ready');
      await handle.signal('retry');
      await until(() => conditionOf(world, 'Stalled') === 'False Progressing', 'over');
    });
  });

  it('is not Ready while another Proxy keeps its address', async () => {
    await onReady(async (story) => {
      const { world, until } = story;
      await observed(story, { heldBy: 'egress/p2' });
      await until(() => conditionOf(world, 'Ready') === 'False AddressConflict', 'told');
      assert.equal(world.status?.phase, 'Running');
      assert.match(world.status?.message ?? '', /egress\/p2/);
      await observed(story, { heldBy: null });
      await until(() => world.status?.phase === 'Ready', 'Ready again');
    });
  });

  it('tries nothing while the alarm MassAbsence stands', async () => {
    await onReady(async (story) => {
      const { world, until, skip } = story;
      const facts = { reason: 'MassAbsence', scope: 'provider' } as const;
      world.fail('allocateVmid', { type: 'Transient', message: '5 of 5 VMs missing', facts });
      await observed(story);
      await until(() => world.status?.message.includes('missing') === true, 'told');
      assert.equal(world.status?.ip, ip);
      await skip(3_000);
      await until(() => world.status?.message === '', 'over');
      assert.equal(world.peak, 1);
    });
  });

  it('shows a Secret that is missing while the VM serves on', async () => {
    await onReady(async (story) => {
      const { world, until, changed } = story;
      await changed({ specHash: null, cloudInitProblem: 'Secret egress/ci has no user-data' });
      await until(
        () => conditionOf(world, 'CloudInitAvailable') === 'False CloudInitUnavailable',
        'told',
      );
      assert.equal(world.status?.phase, 'Ready');
      await changed({ specHash: 'aaaa', cloudInitProblem: null });
      await until(() => conditionOf(world, 'CloudInitAvailable') === 'none', 'over');
    });
  });
});
