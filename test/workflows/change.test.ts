import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeWorld } from '../support/fakeWorld.ts';
import { gate, ready } from '../support/storyParts.ts';
import { tellStory, useWorkflowServer } from '../support/workflowHarness.ts';

describe('a change of what is wanted', () => {
  useWorkflowServer();

  it('CreateFirst: the old VM serves until the new one is Ready, then goes after its drain', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await ready(story);
      await story.changed({ specHash: 'bbbb' });
      await story.until(() => world.status?.replacement?.ip === '192.0.2.11', 'the new address');
      assert.equal(world.status?.phase, 'Ready');
      assert.equal(world.status?.ip, '192.0.2.10');
      assert.equal(world.vms.size, 2);
      await story.health(true, '192.0.2.11');
      await story.until(() => world.status?.ip === '192.0.2.11', 'the switch');
      assert.equal(world.status?.phase, 'Ready');
      assert.equal(world.vms.size, 2);
      await story.skip(31_000);
      await story.until(() => world.vms.size === 1, 'the old VM gone');
      assert.equal(world.vms.has(100001), true);
      await story.until(() => world.seeds.size === 1, 'the old seed gone');
    });
  });

  it('is being reconciled from the first status that names the new spec', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await ready(story);
      const placement = gate();
      world.before('resolvePlacement', placement.enter);
      await story.changed({ specHash: 'bbbb' });
      await story.until(() => placement.reached(), 'about to be made');
      await story.until(() => world.status?.desiredSpecHash === 'bbbb', 'the new spec');
      const settled = world.statuses.filter(
        ({ desiredSpecHash, specHash, conditions }) =>
          desiredSpecHash !== specHash &&
          conditions.some(({ type, status, reason }) => type === 'Reconciling' && status === 'False' && reason === 'Settled'), // prettier-ignore
      );
      assert.deepEqual(settled, []);
      assert.equal(world.status?.phase, 'Ready');
      placement.open();
      await story.until(() => world.status?.replacement?.ip === '192.0.2.11', 'the new address');
    });
  });

  it('CreateFirst: a replacement that does not get Ready is Stalled while the old VM serves on', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await ready(story);
      await story.changed({ specHash: 'bbbb' });
      await story.until(() => world.status?.replacement?.ip === '192.0.2.11', 'the new address');
      await story.skip(14 * 60_000 + 50_000);
      await story.skip(20_000);
      const stalled = (): string | undefined =>
        world.status?.conditions.find(({ type }) => type === 'Stalled')?.reason;
      await story.until(() => stalled() === 'ReplacementFailed', 'ReplacementFailed');
      assert.equal(world.status?.phase, 'Ready');
      assert.equal(world.status?.ip, '192.0.2.10');
      await story.changed({ specHash: 'aaaa' });
      await story.until(() => world.vms.size === 1, 'the replacement gone');
      assert.equal(world.vms.has(100000), true);
      assert.equal(world.status?.phase, 'Ready');
    });
  });

  it('DeleteFirst: the old VM goes before the new one is made', async () => {
    const world = new FakeWorld();
    world.desired = world.desired && { ...world.desired, replaceStrategy: 'DeleteFirst' };
    await tellStory(world, async (story) => {
      await ready(story);
      await story.changed({ specHash: 'bbbb' });
      await story.skip(31_000);
      await story.until(
        () => world.status?.specHash === 'bbbb' && world.status.ip !== null,
        'the new VM',
      );
      assert.equal(world.vms.size, 1);
      assert.equal(world.peak, 1);
      assert.equal(world.seeds.size, 1);
    });
  });

  it('DeleteFirst: a new VM with the address of the old one is not Ready before it was probed', async () => {
    const world = new FakeWorld();
    world.fixedIp = '192.0.2.10';
    world.desired = world.desired && { ...world.desired, replaceStrategy: 'DeleteFirst' };
    await tellStory(world, async (story) => {
      await ready(story);
      await story.changed({ specHash: 'bbbb', drainSeconds: 0 });
      await story.until(
        () => world.status?.specHash === 'bbbb' && world.status.ip === '192.0.2.10',
        'the new VM',
      );
      await story.settled();
      assert.equal(world.status?.phase, 'Running');
      assert.equal(world.status?.healthy, null);
      await story.health(true);
      await story.until(() => world.status?.phase === 'Ready', 'Ready');
    });
  });

  it('Retain keeps a VM that was Ready and was taken up again from its drain', async () => {
    const world = new FakeWorld();
    world.desired = world.desired && { ...world.desired, deletionPolicy: 'Retain' };
    await tellStory(world, async (story) => {
      await ready(story);
      await story.changed({ specHash: 'bbbb' });
      await story.until(() => world.status?.replacement?.ip === '192.0.2.11', 'the new address');
      await story.health(true, '192.0.2.11');
      await story.until(() => world.status?.ip === '192.0.2.11', 'the switch');
      const silent = gate();
      world.before('pollAgent', silent.enter);
      await story.changed({ specHash: 'aaaa' });
      await story.until(silent.reached, 'the old VM taken up, its agent being asked');
      assert.equal(world.status?.replacement?.vmid, 100_000);
      await story.deleted();
      assert.equal((await story.handle.result()).outcome, 'Deleted');
      silent.open();
    });
    assert.deepEqual(new Set(world.vms.keys()), new Set([100_000, 100_001]));
  });

  it('awaits a running clone when the Proxy is deleted meanwhile, then removes what it made', async () => {
    const world = new FakeWorld();
    const cloning = gate();
    world.before('awaitTask', cloning.enterOnce);
    await tellStory(world, async (story) => {
      await story.until(cloning.reached, 'the clone running');
      const told = /^cloning template 9001 to VM 100000 on pv1-1 \(task UPID:.*\)$/;
      await story.until(() => told.test(world.status?.message ?? ''), 'the clone told');
      await story.deleted();
      await story.until(() => world.status?.phase === 'Deleting', 'Deleting');
      assert.equal(world.vms.size, 1);
      cloning.open();
      assert.equal((await story.handle.result()).outcome, 'Deleted');
    });
    assert.equal(world.vms.size, 0);
    assert.equal(world.seeds.size, 0);
    assert.equal(world.finalizer, false);
  });

  it('cancels the wait for the agent when the Proxy is deleted', async () => {
    const world = new FakeWorld();
    const silent = gate();
    world.before('pollAgent', silent.enter);
    await tellStory(world, async (story) => {
      await story.until(silent.reached, 'the agent being asked');
      const told =
        'VM 100000 on pv1-1 has started, waiting for its guest agent to tell the address';
      await story.until(() => world.status?.message === told, 'the wait told');
      await story.deleted();
      assert.equal((await story.handle.result()).outcome, 'Deleted');
      silent.open();
    });
    assert.equal(world.vms.size, 0);
  });

  it('makes the newest spec when it changes twice in mid-line', async () => {
    const world = new FakeWorld();
    const silent = gate();
    world.before('pollAgent', silent.enterOnce);
    await tellStory(world, async (story) => {
      await story.until(silent.reached, 'the agent being asked');
      await story.changed({ specHash: 'bbbb' });
      await story.changed({ specHash: 'cccc' });
      await story.until(
        () => world.status?.specHash === 'cccc' && world.status.ip !== null,
        'cccc',
      );
      await story.skip(31_000);
      await story.until(() => world.vms.size === 1, 'one VM');
      assert.deepEqual(
        [...world.vms.values()].map((vm) => vm.specHash),
        ['cccc'],
      );
    });
  });

  it('a change that does not touch the VM interrupts nothing', async () => {
    const world = new FakeWorld();
    const silent = gate();
    world.before('pollAgent', silent.enter);
    await tellStory(world, async (story) => {
      await story.until(silent.reached, 'the agent being asked');
      await story.changed({ drainSeconds: 5 });
      await story.until(() => world.status?.observedGeneration === 2, 'generation 2');
      silent.open();
      await story.until(() => world.status?.ip === '192.0.2.10', 'an address');
      assert.equal(world.peak, 1);
    });
  });

  it('paused takes effect between steps, and the line goes on when it is lifted', async () => {
    const world = new FakeWorld();
    const cloning = gate();
    world.before('awaitTask', cloning.enterOnce);
    await tellStory(world, async (story) => {
      await story.until(cloning.reached, 'the clone running');
      await story.changed({ paused: true });
      await story.until(() => world.status?.observedGeneration === 2, 'the pause taken in');
      cloning.open();
      await story.until(() => world.status?.message.startsWith('paused') === true, 'paused');
      await story.skip(60_000);
      assert.deepEqual(
        [...world.vms.values()].map((vm) => vm.power),
        ['stopped'],
      );
      await story.changed({ paused: false });
      await story.until(() => world.status?.ip === '192.0.2.10', 'an address');
      assert.equal(world.peak, 1);
    });
  });

  it('a paused Proxy is not deleted before the pause is lifted', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await ready(story);
      await story.changed({ paused: true });
      await story.deleted();
      await story.until(
        () => world.status?.message.includes('the deletion waits') === true,
        'waits',
      );
      await story.skip(60 * 60_000);
      assert.equal(world.vms.size, 1);
      await story.changed({ paused: false });
      assert.equal((await story.handle.result()).outcome, 'Deleted');
    });
    assert.equal(world.vms.size, 0);
  });

  it('forceDelete ends a deletion in mid-wait and names what is left', async () => {
    const world = new FakeWorld();
    world.desired = world.desired && { ...world.desired, drainSeconds: 0 };
    await tellStory(world, async (story) => {
      await ready(story);
      const stuck = gate();
      world.before('destroyVm', stuck.enter);
      await story.deleted();
      await story.until(stuck.reached, 'the destroy under way');
      await story.handle.signal('forceDelete');
      const result = await story.handle.result();
      assert.equal(result.outcome, 'ForceDeleted');
      assert.deepEqual(
        result.left.map(({ vmid, node, seedFile }) => ({ vmid, node, seedFile })),
        [{ vmid: 100000, node: 'pv1-1', seedFile: 'proxy-p1-abcdef-11111111-aaaa-seed.iso' }],
      );
      stuck.open();
    });
    assert.equal(world.finalizer, false);
    assert.ok(world.events.some(({ reason }) => reason === 'ForceDeleted'));
  });

  it('a force-delete annotation set before the deletion does not force it', async () => {
    const world = new FakeWorld();
    world.desired = world.desired && { ...world.desired, drainSeconds: 0 };
    await tellStory(world, async (story) => {
      await ready(story);
      await story.changed({ forceDelete: 'too-early' });
      await story.until(() => world.status?.handled.forceDelete === 'too-early', 'used up');
      assert.ok(world.events.some(({ reason }) => reason === 'ForceDeleteIgnored'));
      await story.deleted();
      assert.equal((await story.handle.result()).outcome, 'Deleted');
    });
    assert.equal(world.vms.size, 0);
    assert.equal(world.seeds.size, 0);
  });

  it('forceDelete does nothing while the Proxy is not being deleted', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await ready(story);
      await story.handle.signal('forceDelete');
      await story.until(
        () => world.events.some(({ reason }) => reason === 'ForceDeleteIgnored'),
        'the event',
      );
      assert.equal(world.vms.size, 1);
      assert.equal(world.finalizer, true);
      assert.equal(world.status?.phase, 'Ready');
    });
  });
});
