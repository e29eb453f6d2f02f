/** What the settings of Proxy and provider decide about VMs: deletionPolicy and its mark, abortClones. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApplicationFailure } from '@temporalio/common';
import type { DeletionPolicy } from '../../workflows/contract/proxy.ts';
import { FakeWorld } from '../support/fakeWorld.ts';
import { locked } from '../support/plannedFailures.ts';
import { gate, ready } from '../support/storyParts.ts';
import { tellStory, useWorkflowServer, type Story } from '../support/workflowHarness.ts';

function worldWith(deletionPolicy: DeletionPolicy): FakeWorld {
  const world = new FakeWorld();
  world.desired = world.desired && { ...world.desired, deletionPolicy };
  return world;
}

function marks(world: FakeWorld): unknown[] {
  return [...world.vms.values()].map(({ vmid, policy, retained }) => ({ vmid, policy, retained }));
}

describe('the mark of a VM', () => {
  useWorkflowServer();

  it('names a deletion policy that changed while the VM serves, which runs on', async () => {
    const world = worldWith('Delete');
    await tellStory(world, async (story) => {
      await ready(story);
      assert.deepEqual(marks(world), [{ vmid: 100_000, policy: 'Delete', retained: false }]);
      await story.changed({ deletionPolicy: 'Retain' });
      await story.until(() => world.vms.get(100_000)?.policy === 'Retain', 'the mark');
      await story.changed({ deletionPolicy: 'Delete' });
      await story.until(() => world.vms.get(100_000)?.policy === 'Delete', 'the mark, again');
      await story.settled();
      assert.equal(world.vms.get(100_000)?.power, 'running');
      assert.equal(world.status?.phase, 'Ready');
      assert.equal(world.peak, 1);
    });
  });

  it('is left as it is while the Proxy is paused, and brought up to date afterwards', async () => {
    const world = worldWith('Delete');
    await tellStory(world, async (story) => {
      await ready(story);
      await story.changed({ deletionPolicy: 'Retain', paused: true });
      await story.until(() => world.status?.observedGeneration === 2, 'the change taken in');
      await story.settled();
      assert.equal(world.vms.get(100_000)?.policy, 'Delete');
      await story.changed({ paused: false });
      await story.until(() => world.vms.get(100_000)?.policy === 'Retain', 'the mark');
    });
  });

  it('that cannot be written is told, tried again, and holds up neither replacement nor deletion', async () => {
    const world = worldWith('Delete');
    await tellStory(world, async (story) => {
      await ready(story);
      world.fail('configureVm', locked, locked);
      await story.changed({ deletionPolicy: 'Retain' });
      await story.until(() => world.status?.message.includes('locked (backup)') === true, 'why');
      assert.equal(world.status?.phase, 'Ready');
      await story.skip(10_000);
      await story.until(() => world.vms.get(100_000)?.policy === 'Retain', 'the mark');
      await story.until(() => world.status?.message === '', 'nothing in the way');

      world.fail('configureVm', locked);
      await story.changed({ deletionPolicy: 'Delete', specHash: 'bbbb' });
      await story.until(() => world.status?.replacement?.ip === '192.0.2.11', 'the replacement');
      await story.deleted();
      assert.equal((await story.handle.result()).outcome, 'Deleted');
    });
    assert.equal(world.vms.size, 0);
  });

  it('is looked at once by a run that took the VM over from the status', async () => {
    const world = worldWith('Retain');
    const name = 'proxy-p1-abcdef-11111111-aaaa';
    const vm = { vmid: 100_000, name, specHash: 'aaaa', configured: true, ip: '192.0.2.10' };
    world.vms.set(100_000, { ...vm, power: 'running', policy: 'Delete' });
    world.finalizer = true;
    const { vmid, specHash, ip } = vm;
    const place = { node: 'pv1-1', vmName: name, provider: 'pve' };
    const before = { vmid, specHash, ip, healthy: true, everReady: true };
    world.recorded = { ...world.recorded, ...place, ...before };
    await tellStory(world, async ({ until }) => {
      await until(() => world.vms.get(100_000)?.policy === 'Retain', 'the mark');
    });
  });
});

describe('deletionPolicy: Retain', () => {
  useWorkflowServer();

  it('marks the VM as retained before the finalizer goes', async () => {
    const world = worldWith('Retain');
    await tellStory(world, async (story) => {
      await ready(story);
      world.fail('configureVm', locked);
      await story.deleted();
      await story.until(() => world.status?.message.includes('locked (backup)') === true, 'why');
      assert.equal(world.finalizer, true);
      assert.equal((await story.handle.result()).outcome, 'Deleted');
    });
    assert.deepEqual(marks(world), [{ vmid: 100_000, policy: 'Retain', retained: true }]);
    assert.equal(world.seeds.size, 1);
    assert.equal(world.finalizer, false);
    assert.ok(world.events.some(({ reason }) => reason === 'VmRetained'));
  });

  it('lets a VM stay whose lock never lets its mark be written, and says so', async () => {
    const world = worldWith('Retain');
    await tellStory(world, async (story) => {
      await ready(story);
      Object.assign(world.vms.get(100_000) ?? {}, { deadLock: 'suspended' });
      await story.deleted();
      assert.equal((await story.handle.result()).outcome, 'Deleted');
    });
    assert.deepEqual(marks(world), [{ vmid: 100_000, policy: 'Retain', retained: false }]);
    const told = world.events.find(({ reason }) => reason === 'VmRetained');
    assert.match(told?.message ?? '', /VM 100000 .*lock \(suspended\)/);
    assert.equal(told?.type, 'Warning');
  });

  it('set after the VM was Ready counts', async () => {
    const world = worldWith('Delete');
    await tellStory(world, async (story) => {
      await ready(story);
      await story.changed({ deletionPolicy: 'Retain' });
      await story.deleted();
      assert.equal((await story.handle.result()).outcome, 'Deleted');
    });
    assert.deepEqual(marks(world), [{ vmid: 100_000, policy: 'Retain', retained: true }]);
  });

  it('keeps no VM that was never Ready', async () => {
    const world = worldWith('Retain');
    await tellStory(world, async (story) => {
      await story.until(() => world.status?.ip === '192.0.2.10', 'an address');
      await story.deleted();
      assert.equal((await story.handle.result()).outcome, 'Deleted');
    });
    assert.equal(world.vms.size, 0);
    assert.equal(world.seeds.size, 0);
  });

  it('marks what a lost run left, when the status says that the Proxy was Ready once', async () => {
    const world = worldWith('Retain');
    const name = 'proxy-p1-abcdef-11111111-eeee';
    const vm = { vmid: 100_003, name, specHash: 'eeee', configured: true, ip: '192.0.2.13' };
    world.vms.set(100_003, { ...vm, power: 'running', policy: 'Delete' });
    world.finalizer = true;
    world.deleting = true;
    world.recorded = { ...world.recorded, everReady: true };
    await tellStory(world, async ({ handle }) => {
      assert.equal((await handle.result()).outcome, 'Deleted');
    });
    assert.deepEqual(marks(world), [{ vmid: 100_003, policy: 'Retain', retained: true }]);
  });

  it('a forced deletion names a VM that was to be retained and is not marked yet', async () => {
    const world = worldWith('Retain');
    await tellStory(world, async (story) => {
      await ready(story);
      const hung = gate();
      world.before('configureVm', hung.enter);
      await story.deleted();
      await story.until(hung.reached, 'the mark being written');
      await story.handle.signal('forceDelete');
      const { outcome, left } = await story.handle.result();
      assert.equal(outcome, 'ForceDeleted');
      assert.deepEqual(
        left.map(({ vmid, remedy }) => [vmid, remedy]),
        [[100_000, undefined]],
      );
      hung.open();
    });
    assert.equal(world.vms.size, 1);
  });
});

describe('abortClones', () => {
  useWorkflowServer();

  async function deletedWhileCloning(world: FakeWorld, story: Story): Promise<void> {
    const cloning = gate();
    world.before('awaitTask', cloning.enterOnce);
    await story.until(cloning.reached, 'the clone running');
    await story.deleted();
    assert.equal((await story.handle.result()).outcome, 'Deleted');
    cloning.open();
  }

  it('a deletion ends the clone that is under way instead of waiting for it', async () => {
    const world = new FakeWorld();
    world.abortClones = true;
    await tellStory(world, (story) => deletedWhileCloning(world, story));
    assert.deepEqual(world.abortedClones, ['UPID:pv1-1:clone:1:']);
    assert.equal(world.vms.size, 0);
    assert.equal(world.finalizer, false);
  });

  it('a clone that ended well before it was told to end is removed like any VM', async () => {
    const world = new FakeWorld();
    world.abortClones = true;
    world.abortsComeTooLate = true;
    await tellStory(world, (story) => deletedWhileCloning(world, story));
    assert.equal(world.abortedClones.length, 1);
    assert.equal(world.vms.size, 0);
  });

  it('a change of spec ends the clone of the VM that nobody wants any more', async () => {
    const world = new FakeWorld();
    world.abortClones = true;
    const cloning = gate();
    world.before('awaitTask', cloning.enterOnce);
    await tellStory(world, async (story) => {
      await story.until(cloning.reached, 'the clone running');
      await story.changed({ specHash: 'bbbb' });
      await story.until(
        () => world.status?.specHash === 'bbbb' && world.status.ip !== null,
        'bbbb',
      );
      cloning.open();
    });
    assert.equal(world.abortedClones.length, 1);
    assert.deepEqual(
      [...world.vms.values()].map(({ specHash }) => specHash),
      ['bbbb'],
    );
  });

  it('a pause ends the wait, not the clone', async () => {
    const world = new FakeWorld();
    world.abortClones = true;
    const cloning = gate();
    world.before('awaitTask', cloning.enterOnce);
    await tellStory(world, async (story) => {
      await story.until(cloning.reached, 'the clone running');
      await story.changed({ paused: true });
      await story.until(() => world.status?.message.startsWith('paused') === true, 'paused');
      cloning.open();
      await story.changed({ paused: false });
      await story.until(() => world.status?.ip === '192.0.2.10', 'an address');
    });
    assert.deepEqual(world.abortedClones, []);
    assert.equal(world.peak, 1);
  });

  it('a clone that somebody else started to the VMID of our own is not ended', async () => {
    const world = new FakeWorld();
    world.abortClones = true;
    const other = gate();
    let waits = 0;
    world.before('awaitTask', async () => {
      waits += 1;
      if (waits > 1) return other.enterOnce();
      world.finds.push({
        kind: 'cloning',
        vmid: 100_000,
        node: 'pv1-1',
        upid: 'UPID:pv1-1:other:',
      });
      const facts = { reason: 'BudgetExceeded', scope: 'proxy', goBack: true } as const;
      const failure = { type: 'Transient', message: 'our own takes long', details: [facts] };
      throw ApplicationFailure.create({ ...failure, nonRetryable: true });
    });
    await tellStory(world, async (story) => {
      await story.until(() => world.status?.message.includes('takes long') === true, 'the budget');
      // Not `skip`, which waits for steps: the next one stays until the deletion.
      await story.settled();
      await story.env.sleep(2_000);
      await story.until(other.reached, 'the other clone being waited for');
      await story.deleted();
      assert.equal((await story.handle.result()).outcome, 'Deleted');
      other.open();
    });
    assert.deepEqual(world.abortedClones, []);
  });

  it('a clone that was found running, and may be somebody else’s, is waited for', async () => {
    const world = new FakeWorld();
    world.abortClones = true;
    world.finds.push({ kind: 'cloning', vmid: 100_000, node: 'pv1-1', upid: 'UPID:pv1-1:found:' });
    await tellStory(world, (story) => deletedWhileCloning(world, story));
    assert.deepEqual(world.abortedClones, []);
  });
});
