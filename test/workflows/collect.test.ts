import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApplicationFailure } from '@temporalio/common';
import type { OrphanSignal } from '../../workflows/contract/collection.ts';
import { mainTaskQueue, proxyWorkflowId } from '../../workflows/contract/messages.ts';
import type { proxy } from '../../workflows/index.ts';
import { eventually } from '../support/eventually.ts';
import { desiredProxy, FakeWorld, proxyRef } from '../support/fakeWorld.ts';
import { gate, letGoWhilePaused, ready } from '../support/storyParts.ts';
import {
  onServer,
  tellStory,
  useWorkflowServer,
  type ProxyHandle,
  type Story,
} from '../support/workflowHarness.ts';

const orphan: OrphanSignal = { provider: 'pve', vmid: 100_003 };

/** A VM with its seed that some earlier run made. */
function withVm(world: FakeWorld, vmid = orphan.vmid, specHash = 'eeee'): void {
  const name = `proxy-p1-abcdef-11111111-${specHash}`;
  world.vms.set(vmid, {
    vmid,
    name,
    specHash,
    power: 'running',
    configured: true,
    ip: '192.0.2.13',
  });
  world.seeds.add(`${name}-seed.iso`);
}

/** Tells the run of the UID about an orphan, starting it where there is none, as the collection does. */
async function tellOrphan(
  world: FakeWorld,
  tell: (handle: ProxyHandle) => Promise<void>,
): Promise<void> {
  await onServer(world.steps(), {}, async ({ client }) => {
    const handle = await client.workflow.signalWithStart<typeof proxy, [OrphanSignal]>('proxy', {
      workflowId: proxyWorkflowId(proxyRef.uid),
      taskQueue: mainTaskQueue,
      args: [{ ref: proxyRef, searchAttributes: false }],
      signal: 'orphan',
      signalArgs: [orphan],
    });
    const first = client.workflow.getHandle<typeof proxy>(handle.workflowId);
    await tell({ ...first, firstExecutionRunId: handle.signaledRunId });
  });
}

/** The Proxy becomes Ready and its object vanishes without a deletion. */
async function missing(story: Story): Promise<void> {
  await ready(story);
  story.world.desired = null;
  await story.handle.signal('desiredChanged', { generation: 1, deleting: false });
}

describe('an orphan without a run', () => {
  useWorkflowServer();

  it('is stopped and destroyed, its seed goes, and the run says that it collected', async () => {
    const world = new FakeWorld();
    world.desired = null;
    withVm(world);
    await tellOrphan(world, async (handle) => {
      assert.deepEqual(await handle.result(), { outcome: 'Collected', left: [] });
    });
    assert.equal(world.vms.size, 0);
    assert.equal(world.seeds.size, 0);
  });

  it('goes alone: another VM of the UID was not told of', async () => {
    const world = new FakeWorld();
    world.desired = null;
    withVm(world);
    withVm(world, 100_004, 'ffff');
    await tellOrphan(world, async (handle) => {
      assert.equal((await handle.result()).outcome, 'Collected');
    });
    assert.deepEqual([...world.vms.keys()], [100_004]);
    assert.deepEqual([...world.seeds], ['proxy-p1-abcdef-11111111-ffff-seed.iso']);
  });

  it('is none when its Proxy is there: the run serves it, and removes nothing', async () => {
    const world = new FakeWorld();
    world.finalizer = true;
    world.desired = desiredProxy({ specHash: 'eeee' });
    withVm(world);
    await tellOrphan(world, async (handle) => {
      await eventually(() => assert.equal(world.status?.vmid, orphan.vmid), 15_000);
      await handle.terminate('the test is over');
    });
    assert.equal(world.vms.size, 1);
    assert.equal(world.seeds.size, 1);
  });

  it('waits for a Proxmox that is down, and is collected when it is back', async () => {
    const world = new FakeWorld();
    world.desired = null;
    withVm(world);
    const down = {
      type: 'Transient',
      message: 'no connection',
      facts: { reason: 'Unreachable', scope: 'provider' },
    } as const;
    world.fail('listManagedVms', down, down);
    world.fail('destroyVm', down);
    await tellOrphan(world, async (handle) => {
      assert.equal((await handle.result()).outcome, 'Collected');
    });
    assert.equal(world.vms.size, 0);
  });

  it('is let go when a step finds that Kubernetes wants it after all', async () => {
    const world = new FakeWorld();
    world.desired = null;
    withVm(world);
    world.fail('destroyVm', {
      type: 'Transient',
      message: 'its Proxy exists',
      facts: { reason: 'StillWanted', scope: 'proxy' },
    });
    await tellOrphan(world, async (handle) => {
      assert.equal((await handle.result()).outcome, 'Collected');
    });
    assert.equal(world.vms.size, 1);
    assert.equal(world.seeds.size, 1);
  });
});

describe('a run whose object is missing', () => {
  useWorkflowServer();

  it('destroys nothing by itself, and ends when the collection took its VM', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await missing(story);
      await story.settled();
      assert.equal(world.vms.size, 1);
      await story.handle.signal('orphan', { provider: 'pve', vmid: 100_000 });
      assert.deepEqual(await story.handle.result(), { outcome: 'Collected', left: [] });
    });
    assert.equal(world.vms.size, 0);
    assert.equal(world.seeds.size, 0);
  });

  it('does what the collection asks although it was paused: nobody is there to end the pause', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await ready(story);
      await story.changed({ paused: true });
      await story.until(() => world.status?.message.startsWith('paused') === true, 'the pause');
      world.desired = null;
      await story.handle.signal('orphan', { provider: 'pve', vmid: 100_000 });
      assert.equal((await story.handle.result()).outcome, 'Collected');
    });
    assert.equal(world.vms.size, 0);
  });

  it('takes its VM up again when the object comes back in the middle of the collection', async () => {
    const world = new FakeWorld();
    const stopping = gate();
    await tellStory(world, async (story) => {
      await missing(story);
      await story.settled();
      const before = world.statuses.length;
      world.before('stopVm', stopping.enterOnce);
      await story.handle.signal('orphan', { provider: 'pve', vmid: 100_000 });
      await story.until(stopping.reached, 'the stop');
      world.desired = desiredProxy();
      world.before('destroyVm', () => {
        const details = [{ reason: 'StillWanted', scope: 'proxy' }];
        throw ApplicationFailure.create({ type: 'Transient', nonRetryable: true, message: 'its Proxy exists', details }); // prettier-ignore
      });
      await story.handle.signal('desiredChanged', { generation: 1, deleting: false });
      await story.until(() => world.statuses.length > before, 'the object read');
      await story.calm();
      stopping.open();
      await story.until(() => world.status?.ip === '192.0.2.10', 'an address');
      assert.equal(world.vms.get(100_000)?.power, 'running');
      assert.equal(world.seeds.size, 1);
      world.before('destroyVm', () => undefined);
      await story.deleted();
      assert.equal((await story.handle.result()).outcome, 'Deleted');
    });
    assert.equal(world.peak, 1);
  });

  it('ignores an orphan while it is being deleted: its own removal is under way', async () => {
    const world = new FakeWorld();
    const stopping = gate();
    world.before('stopVm', stopping.enterOnce);
    await tellStory(world, async (story) => {
      await ready(story);
      await story.changed({ drainSeconds: 0 });
      await story.deleted();
      await story.until(stopping.reached, 'the stop');
      await story.handle.signal('orphan', { provider: 'pve', vmid: 100_000 });
      stopping.open();
      assert.equal((await story.handle.result()).outcome, 'Deleted');
    });
    assert.equal(world.vms.size, 0);
  });
});

describe('a paused deletion whose finalizer is taken off', () => {
  useWorkflowServer();

  it('ends with what is left, which the collection may then remove', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await letGoWhilePaused(story);
      await story.handle.signal('desiredChanged', { generation: 1, deleting: true });
      const { outcome, left } = await story.handle.result();
      assert.deepEqual([outcome, left.map(({ vmid }) => vmid)], ['Gone', [100_000]]);
    });
    assert.equal(world.vms.get(100_000)?.power, 'running');
    await tellOrphan(world, async (handle) => {
      assert.equal((await handle.result()).outcome, 'Collected');
    });
  });
});

describe('a leftover', () => {
  useWorkflowServer();

  const stuck = {
    kind: 'stuck',
    vmid: 100_009,
    node: 'pv1-1',
    lock: 'clone',
    remedy: 'on pv1-1: qm unlock 100009 && qm destroy 100009 --purge',
  } as const;

  /** A Proxy that gave a VMID up, and is Ready with the next one. */
  async function withLeftover(tell: (story: Story) => Promise<void>): Promise<FakeWorld> {
    const world = new FakeWorld();
    world.finds.push(stuck);
    await tellStory(world, async (story) => {
      await ready(story);
      assert.deepEqual(
        world.status?.leftovers.map(({ vmid }) => vmid),
        [100_009],
      );
      await tell(story);
    });
    return world;
  }
  const signal = { provider: 'pve', vmid: 100_009 };

  it('that is ours and unlocked by now is destroyed; the seed stays with the VM that has its name', async () => {
    const world = await withLeftover(async ({ world: told, handle, until }) => {
      const serving = told.vms.get(100_000);
      assert.ok(serving);
      told.vms.set(100_009, { ...serving, vmid: 100_009, power: 'stopped' });
      await handle.signal('orphan', signal);
      await until(() => told.events.some(({ reason }) => reason === 'VmRemoved'), 'it gone');
      assert.equal(told.status?.phase, 'Ready');
      assert.deepEqual(told.status?.leftovers, []);
    });
    assert.deepEqual([...world.vms.keys()], [100_000]);
    assert.equal(world.seeds.size, 1);
    const event = world.events.find(({ reason }) => reason === 'LeftoverCleared');
    assert.match(event?.message ?? '', /VM 100009 is unlocked/);
  });

  it('that is gone is forgotten, so that the Proxy may give another VMID up', async () => {
    const world = await withLeftover(async ({ world: told, handle, until }) => {
      await handle.signal('orphan', signal);
      await until(() => told.status?.leftovers.length === 0, 'it forgotten');
    });
    assert.deepEqual([...world.vms.keys()], [100_000]);
  });

  it('is no reason to touch a VM that serves, whatever the collection says', async () => {
    const world = await withLeftover(async ({ world: told, handle, until }) => {
      await handle.signal('orphan', { provider: 'pve', vmid: 100_000 });
      await handle.signal('orphan', signal);
      await until(() => told.status?.leftovers.length === 0, 'the leftover forgotten');
    });
    assert.equal(world.vms.get(100_000)?.power, 'running');
  });
});
