import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeWorld, type PlannedFailure } from '../support/fakeWorld.ts';
import { badImage, unauthorized } from '../support/plannedFailures.ts';
import { tellStory, useWorkflowServer } from '../support/workflowHarness.ts';

const refused: PlannedFailure = {
  type: 'Transient',
  message: 'clone to VM 100000 on pv1-1: connection refused',
  facts: { reason: 'Unreachable', scope: 'provider', remedy: 'check pveproxy on the node' },
};

/** Why nothing goes on. */
function stalledFor(world: FakeWorld): string | undefined {
  const found = world.status?.conditions.find(({ type }) => type === 'Stalled');
  return found?.status === 'True' ? found.reason : undefined;
}

describe('failures of a step', () => {
  useWorkflowServer();

  it('latches a permanent failure of the Proxy until its spec changes', async () => {
    const world = new FakeWorld();
    world.fail('resolvePlacement', badImage);
    await tellStory(world, async ({ until, changed, skip }) => {
      await until(() => world.status?.phase === 'Failed', 'Failed');
      assert.match(
        world.status?.message ?? '',
        /placement\.image "x" is not in proxmox\.templates/,
      );
      const stalled = world.status?.conditions.find(({ type }) => type === 'Stalled');
      assert.equal(stalled?.status, 'True');
      assert.equal(stalled?.reason, 'PlacementInvalid');
      await skip(60 * 60 * 1000);
      assert.equal(world.status?.phase, 'Failed');
      assert.equal(world.vms.size, 0);
      await changed({ specHash: 'bbbb' });
      await until(() => world.status?.ip === '192.0.2.10', 'an address after the change');
    });
  });

  it('tries a latched failure again when retry is signalled', async () => {
    const world = new FakeWorld();
    world.fail('resolvePlacement', badImage);
    await tellStory(world, async ({ until, handle }) => {
      await until(() => world.status?.phase === 'Failed', 'Failed');
      await handle.signal('retry');
      await until(() => world.status?.ip === '192.0.2.10', 'an address after retry');
    });
  });

  it('acts once on a fresh value of the retry annotation', async () => {
    const world = new FakeWorld();
    world.fail('resolvePlacement', badImage, badImage);
    await tellStory(world, async ({ until, changed }) => {
      await until(() => world.status?.phase === 'Failed', 'Failed');
      const attempts = (): number =>
        world.events.filter(({ reason }) => reason === 'RetryRequested').length;
      await changed({ retry: 'now-1' });
      await until(() => world.status?.handled.retry === 'now-1', 'the annotation handled');
      await until(() => world.status?.phase === 'Failed', 'Failed again');
      await changed({ retry: 'now-1', port: 3129 });
      await until(() => world.status?.observedGeneration === 3, 'the third generation');
      assert.equal(attempts(), 1);
    });
  });

  it('shows a transient failure at its first attempt and gets over it', async () => {
    const world = new FakeWorld();
    world.fail('cloneTemplate', refused, refused, refused);
    await tellStory(world, async ({ until, skip, handle }) => {
      await until(
        () => world.status?.message.includes('connection refused') === true,
        'the message',
      );
      assert.equal(world.status?.phase, 'Provisioning');
      assert.match(world.status?.message ?? '', /check pveproxy on the node/);
      const shown = await handle.query<{ currentDetails?: string }>('__temporal_workflow_metadata');
      assert.match(shown.currentDetails ?? '', /Waits: \w+\*\* — clone to VM 100000 .* attempt 1/);
      await skip(30_000);
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
      assert.equal(world.status?.message, 'waiting for the first probe through the proxy');
      assert.equal(world.peak, 1);
    });
  });

  it('takes a VM that a write of the line did not find for a reason to look again, not for an end', async () => {
    const world = new FakeWorld();
    const message = "Configuration file 'nodes/pv1-1/qemu-server/100000.conf' does not exist";
    const facts = { reason: 'VmVanished', scope: 'proxy' } as const;
    world.fail('configureVm', { type: 'NotFound', message, facts });
    world.before('configureVm', () => {
      world.vms.clear();
      world.before('configureVm', () => undefined);
    });
    await tellStory(world, async ({ until, skip }) => {
      await until(() => world.status?.message.includes(message) === true, 'the message');
      assert.equal(world.status?.phase, 'Provisioning');
      await skip(30_000);
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
      assert.deepEqual([world.vms.size, world.peak], [1, 1]);
    });
  });

  it('stays Provisioning for as long as the guest agent is silent, with the reason, and goes on when it answers', async () => {
    const world = new FakeWorld();
    let silent = true;
    world.before('pollAgent', () => {
      for (const vm of world.vms.values()) vm.silent = silent;
    });
    await tellStory(world, async ({ until, skip }) => {
      await until(() => world.status?.message.includes('guest agent') === true, 'the reason');
      await skip(60 * 60_000);
      assert.deepEqual([world.status?.phase, world.status?.ip], ['Provisioning', null]);
      const provisioned = world.status?.conditions.find(({ type }) => type === 'Provisioned');
      assert.equal(provisioned?.reason, 'AgentSilent');
      assert.deepEqual([world.vms.size, world.peak], [1, 1]);
      silent = false;
      await skip(6 * 60_000);
      await until(() => world.status?.phase === 'Running', 'an address');
    });
  });

  it('does not take a vacant VMID for vacant while a clone of unknown outcome may still come', async () => {
    const world = new FakeWorld();
    const unknown = { ...refused, facts: { ...refused.facts, outcomeUnknown: true } };
    world.fail('cloneTemplate', unknown);
    await tellStory(world, async ({ until, skip }) => {
      await until(
        () => world.status?.message.includes('ended without an answer') === true,
        'the wait',
      );
      await skip(20_000);
      assert.equal(world.vms.size, 0);
      await skip(40_000);
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
      assert.equal(world.peak, 1);
    });
  });

  it('sends no second clone while an earlier one may still appear, whatever VMID is vacant now', async () => {
    const world = new FakeWorld();
    const unknown = { ...refused, facts: { ...refused.facts, outcomeUnknown: true } };
    world.fail('cloneTemplate', unknown);
    await tellStory(world, async ({ until, skip }) => {
      await until(
        () => world.status?.message.includes('connection refused') === true,
        'the failure',
      );
      // Somebody else takes the number, so the next look finds another one.
      world.takenVmids.add(100_000);
      await skip(20_000);
      assert.equal(world.vms.size, 0);
      await skip(40_000);
      await until(() => world.status?.ip === '192.0.2.11', 'an address');
      assert.equal(world.peak, 1);
    });
  });

  it('a removal that fails for good is tried again slowly, and by retry at once', async () => {
    const world = new FakeWorld();
    const mismatch: PlannedFailure = {
      type: 'Permanent',
      message: 'VM 100000 on pv1-1 belongs to another installation',
      facts: { reason: 'InstallationMismatch', scope: 'proxy' },
    };
    await tellStory(world, async ({ until, health, changed, skip, handle }) => {
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
      await health(true);
      await until(() => world.status?.phase === 'Ready', 'Ready');
      world.fail('stopVm', mismatch);
      await changed({ specHash: 'bbbb', drainSeconds: 0 });
      await until(() => world.status?.replacement?.ip === '192.0.2.11', 'the new address');
      await health(true, '192.0.2.11');
      await until(() => world.status?.message.includes('another installation') === true, 'why');
      assert.equal(world.vms.size, 2);
      await handle.signal('retry');
      await until(() => world.vms.size === 1, 'the old VM gone');
      await skip(1_000);
      assert.equal(world.status?.phase, 'Ready');
    });
  });

  it('tries a failure of the provider again when the provider changed', async () => {
    const world = new FakeWorld();
    world.fail('allocateVmid', unauthorized);
    await tellStory(world, async ({ until, handle }) => {
      await until(() => world.status?.phase === 'Failed', 'Failed');
      await handle.signal('providerChanged');
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
    });
  });

  it('tries a placement that the config lacked again when the provider changed, also for a replacement', async () => {
    const world = new FakeWorld();
    world.fail('resolvePlacement', badImage);
    await tellStory(world, async ({ until, handle, changed, health }) => {
      await until(() => world.status?.phase === 'Failed', 'Failed');
      await handle.signal('providerChanged');
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
      await health(true);
      await until(() => world.status?.phase === 'Ready', 'Ready');
      world.fail('resolvePlacement', badImage);
      await changed({ specHash: 'bbbb' });
      await until(() => stalledFor(world) === 'ReplacementFailed', 'the replacement refused');
      await handle.signal('providerChanged');
      await until(() => world.status?.replacement?.ip === '192.0.2.11', 'the new VM');
    });
  });

  it('leaves a VM of another installation alone, whatever the provider says', async () => {
    const world = new FakeWorld();
    const message = 'VM 100000 on pv1-1 belongs to another installation';
    const facts = { reason: 'InstallationMismatch', scope: 'proxy' } as const;
    world.fail('allocateVmid', { type: 'Permanent', message, facts });
    await tellStory(world, async ({ until, handle, settled }) => {
      await until(() => world.status?.phase === 'Failed', 'Failed');
      await handle.signal('providerChanged');
      await settled();
      assert.equal(world.status?.phase, 'Failed');
      assert.equal(world.vms.size, 0);
    });
  });

  it('tries a failure of the provider again by itself after ten minutes', async () => {
    const world = new FakeWorld();
    world.fail('allocateVmid', unauthorized);
    await tellStory(world, async ({ until, skip }) => {
      await until(() => world.status?.phase === 'Failed', 'Failed');
      await skip(9 * 60_000);
      assert.equal(world.status?.phase, 'Failed');
      await skip(30_000);
      await skip(31_000);
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
    });
  });

  it('waits for a Secret with cloud-init that is not there yet', async () => {
    const world = new FakeWorld();
    const problem = 'Secret egress/p1-cloud-init does not exist';
    world.desired = world.desired && {
      ...world.desired,
      specHash: null,
      cloudInitProblem: problem,
    };
    await tellStory(world, async ({ until, skip }) => {
      await until(() => world.status?.message.includes(problem) === true, 'the problem');
      assert.equal(world.vms.size, 0);
      world.desired = world.desired && {
        ...world.desired,
        specHash: 'aaaa',
        cloudInitProblem: null,
      };
      await skip(10_000);
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
    });
  });

  it('serves with the VM it has made, although the Secret it was made from is gone by then', async () => {
    const world = new FakeWorld();
    await tellStory(world, async ({ until, changed, health }) => {
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
      const problem = 'Secret egress/p1-cloud-init does not exist';
      // Not an edit: the object is of the same generation.
      await changed({ generation: 1, specHash: null, cloudInitProblem: problem });
      await until(() => world.status?.message.includes(problem) === true, 'the problem');
      await health(true);
      await until(() => world.status?.phase === 'Ready', 'Ready');
      await until(() => !world.status?.message.includes(problem), 'nothing in the way');
      const told = world.status?.conditions.find(({ type }) => type === 'CloudInitAvailable');
      assert.deepEqual([told?.status, told?.message], ['False', problem]);
    });
  });

  it('keeps a deletion that fails until it succeeds, and says why meanwhile', async () => {
    const world = new FakeWorld();
    const forbidden: PlannedFailure = {
      type: 'Permanent',
      message: 'delete of the seed on pv1-1: 403 Permission check failed',
      facts: { reason: 'Forbidden', scope: 'provider', remedy: 'pveum aclmod …' },
    };
    await tellStory(world, async ({ until, health, deleted, handle }) => {
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
      await health(true);
      await until(() => world.status?.phase === 'Ready', 'Ready');
      world.fail('deleteSeed', forbidden);
      await deleted();
      const ended = handle.result();
      await until(() => world.status?.message.includes('pveum aclmod') === true, 'the remedy');
      assert.equal(world.finalizer, true);
      assert.equal((await ended).outcome, 'Deleted');
    });
    assert.equal(world.seeds.size, 0);
    assert.equal(world.finalizer, false);
  });
});
