import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeWorld } from '../support/fakeWorld.ts';
import { ready } from '../support/storyParts.ts';
import { tellStory, useWorkflowServer } from '../support/workflowHarness.ts';

describe('the life of a Proxy', () => {
  useWorkflowServer();

  it('goes from Pending to Ready, and a deletion leaves nothing', async () => {
    const world = new FakeWorld();
    await tellStory(world, async ({ until, health, deleted, handle }) => {
      await until(() => world.status?.phase === 'Running', 'an address');
      assert.equal(world.status?.ip, '192.0.2.10');
      assert.equal(world.status?.healthy, null);
      await health(true);
      await until(() => world.status?.phase === 'Ready', 'Ready');
      assert.deepEqual(world.phases(), ['Pending', 'Provisioning', 'Running', 'Ready']);
      assert.equal(world.status?.everReady, true);
      assert.equal(world.vms.size, 1);
      assert.equal(world.seeds.size, 1);
      await deleted();
      const result = await handle.result();
      assert.equal(result.outcome, 'Deleted');
    });
    assert.equal(world.vms.size, 0);
    assert.equal(world.seeds.size, 0);
    assert.equal(world.finalizer, false);
    assert.ok(world.phases().includes('Deleting'));
  });

  it('grows no disk when the machine type asks for no size', async () => {
    const world = new FakeWorld();
    world.diskGiB = null;
    world.before('resizeDisk', () => {
      throw new Error('a resize was asked for');
    });
    await tellStory(world, async ({ until }) => {
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
    });
  });

  it('is Running again when its probe fails, and Ready when it succeeds', async () => {
    const world = new FakeWorld();
    await tellStory(world, async ({ until, health }) => {
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
      await health(true);
      await until(() => world.status?.phase === 'Ready', 'Ready');
      await health(false);
      await until(() => world.status?.phase === 'Running', 'Running again');
      assert.match(world.status?.message ?? '', /refused the connection/);
      await health(true);
      await until(() => world.status?.phase === 'Ready', 'Ready again');
      assert.equal(world.peak, 1);
    });
  });

  it('ignores a health signal that is older than the last one', async () => {
    const world = new FakeWorld();
    await tellStory(world, async ({ until, health, handle }) => {
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
      await health(true);
      await health(false);
      await until(() => world.status?.healthy === false, 'unhealthy');
      await handle.signal('health', {
        run: 'run-1',
        sequence: 1,
        ip: '192.0.2.10',
        port: 3128,
        healthy: true,
        reason: 'ProbeSucceeded',
        message: 'late',
      });
      const seen = world.statuses.length;
      // A later signal that changes the message shows that the late one was taken in before it.
      await handle.signal('health', {
        run: 'run-1',
        sequence: 9,
        ip: '192.0.2.10',
        port: 3128,
        healthy: false,
        reason: 'ProbeTimeout',
        message: 'no answer in 10 s',
      });
      await until(() => world.status?.message.includes('no answer') === true, 'the later one');
      assert.ok(world.statuses.slice(seen).every((status) => status.healthy === false));
    });
  });

  it('deletes a Proxy that never sent a clone without asking the provider', async () => {
    const world = new FakeWorld();
    const message = 'placement.image "x" is not in proxmox.templates';
    const facts = { reason: 'PlacementInvalid', scope: 'proxy' } as const;
    world.fail('resolvePlacement', { type: 'Permanent', message, facts });
    world.before('listManagedVms', () => {
      throw new Error('the provider was asked');
    });
    await tellStory(world, async ({ until, deleted, handle }) => {
      await until(() => world.status?.phase === 'Failed', 'Failed');
      await deleted();
      assert.equal((await handle.result()).outcome, 'Deleted');
    });
    assert.equal(world.finalizer, false);
  });

  it('finds the VM of a lost workflow by its mark when the deletion comes', async () => {
    const world = new FakeWorld();
    world.finalizer = true;
    world.deleting = true;
    world.vms.set(100003, {
      vmid: 100003,
      name: 'proxy-p1-abcdef-11111111-eeee',
      specHash: 'eeee',
      power: 'running',
      configured: true,
      ip: '192.0.2.13',
    });
    world.seeds.add('proxy-p1-abcdef-11111111-eeee-seed.iso');
    await tellStory(world, async ({ handle }) => {
      assert.equal((await handle.result()).outcome, 'Deleted');
    });
    assert.equal(world.vms.size, 0);
    assert.equal(world.seeds.size, 0);
  });

  it('goes on with a half-made VM whose run was lost, instead of taking it for the one that serves', async () => {
    const world = new FakeWorld();
    world.finalizer = true;
    world.recorded = {
      ...world.recorded,
      vmid: 100_000,
      node: 'pv1-1',
      vmName: 'proxy-p1-abcdef-11111111-aaaa',
      provider: 'pve',
      specHash: 'aaaa',
      everReady: true,
    };
    await tellStory(world, async ({ until }) => {
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
      assert.equal(world.vms.size, 1);
    });
  });

  it('writes a status again that somebody wiped', async () => {
    const world = new FakeWorld();
    await tellStory(world, async ({ until, health, handle }) => {
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
      await health(true);
      await until(() => world.status?.phase === 'Ready', 'Ready');
      const before = world.statuses.length;
      await handle.signal('desiredChanged', { generation: 1, deleting: false });
      await until(() => world.statuses.length > before, 'the status written again');
      assert.equal(world.status?.phase, 'Ready');
    });
  });

  it('touches nothing when the object vanished without a deletion', async () => {
    const world = new FakeWorld();
    await tellStory(world, async ({ until, health, handle, state }) => {
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
      await health(true);
      await until(() => world.status?.phase === 'Ready', 'Ready');
      world.desired = null;
      await handle.signal('desiredChanged', { generation: 1, deleting: false });
      await until(() => world.vms.size === 1, 'the VM stays');
      assert.equal((await state()).serving?.vmid, 100000);
    });
    assert.equal(world.vms.size, 1);
  });

  it('says until when a VM drains, and once that is over that it is being removed', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await ready(story);
      await story.deleted();
      assert.equal((await story.handle.result()).outcome, 'Deleted');
    });
    const told = world.statuses.map(({ message }) => message).filter((message) => message !== '');
    const [drains, ...later] = told.slice(told.findIndex((message) => message.includes('drains')));
    assert.match(
      drains ?? '',
      /^VM 100000 on pv1-1 drains until [-\d]+T[:\d]{8}Z, then it is stopped and destroyed$/,
    );
    assert.ok(later.includes('VM 100000 on pv1-1 is being stopped and destroyed'), told.join('\n'));
  });

  it('leaves a VM that was ever Ready when the deletion policy is Retain', async () => {
    const world = new FakeWorld();
    world.desired = world.desired && { ...world.desired, deletionPolicy: 'Retain' };
    await tellStory(world, async ({ until, health, deleted, handle }) => {
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
      await health(true);
      await until(() => world.status?.phase === 'Ready', 'Ready');
      await deleted();
      assert.equal((await handle.result()).outcome, 'Deleted');
    });
    assert.equal(world.vms.size, 1);
    assert.equal(world.seeds.size, 1);
    assert.equal(world.finalizer, false);
  });
});
