/** What the line does when a step finds the world other than the one before it left it (design §5). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApplicationFailure } from '@temporalio/common';
import type { Reason } from '../../workflows/contract/errors.ts';
import { desiredProxy, FakeWorld, type PlannedFailure } from '../support/fakeWorld.ts';
import { ready } from '../support/storyParts.ts';
import { tellStory, useWorkflowServer, type Story } from '../support/workflowHarness.ts';

function lookAgain(reason: Reason, message: string, facts: object = {}): PlannedFailure {
  return {
    type: 'Transient',
    message,
    facts: { reason, scope: 'provider', goBack: true, ...facts },
  };
}

function once(act: () => void): () => void {
  let done = false;
  return () => {
    if (!done) act();
    done = true;
  };
}

async function addressAt({ world, until, skip }: Story, vmid: number): Promise<void> {
  await skip(60_000);
  await until(() => world.status?.ip !== null && world.status?.vmid === vmid, 'an address');
}

describe('a VMID', () => {
  useWorkflowServer();

  it('that somebody else took in the moment before the clone is passed for the next one', async () => {
    const world = new FakeWorld();
    world.fail(
      'cloneTemplate',
      lookAgain('LostRace', 'unable to create VM 100000: already exists'),
    );
    world.before(
      'cloneTemplate',
      once(() => world.takenVmids.add(100_000)),
    );
    await tellStory(world, async (story) => {
      await addressAt(story, 100_001);
      assert.deepEqual([...world.vms.keys()], [100_001]);
      assert.equal(world.peak, 1);
    });
  });

  it('that cools is taken again by the Proxy that freed it, and by no other', async () => {
    const world = new FakeWorld();
    world.coolingVmids.add(100_000);
    world.desired = desiredProxy({ replaceStrategy: 'DeleteFirst', drainSeconds: 0 });
    await tellStory(world, async (story) => {
      await addressAt(story, 100_001);
      await story.health(true, '192.0.2.11');
      await story.until(() => world.status?.phase === 'Ready', 'Ready');
      await story.changed({ specHash: 'bbbb' });
      await story.until(() => world.status?.specHash === 'bbbb', 'the new VM');
      await addressAt(story, 100_001);
      assert.deepEqual([...world.vms.keys()], [100_001]);
    });
  });

  it('locked for good is given up, once for each Proxy, and told with the line that removes it', async () => {
    const world = new FakeWorld();
    const stuck = { kind: 'stuck', node: 'pv1-1', lock: 'clone' } as const;
    const remedy = 'qm unlock 100000 && qm destroy 100000';
    world.takenVmids.add(100_000).add(100_001);
    world.finds.push(
      { ...stuck, vmid: 100_000, remedy },
      { ...stuck, vmid: 100_001, remedy: 'qm unlock 100001' },
    );
    await tellStory(world, async (story) => {
      const { until, skip } = story;
      await until(
        () => world.status?.message.includes('one VMID was given up already') === true,
        'the wait at the second one',
      );
      assert.deepEqual(
        world.status?.leftovers.map(({ vmid, node }) => ({ vmid, node })),
        [{ vmid: 100_000, node: 'pv1-1' }],
      );
      assert.match(world.status?.leftovers[0]?.reason ?? '', /qm unlock 100000 && qm destroy/);
      assert.equal(world.vms.size, 0);
      // Somebody carried out the line about the second one.
      world.takenVmids.delete(100_001);
      await skip(60_000);
      await until(() => world.status?.vmid === 100_001, 'the VMID that is free again');
      await story.deleted();
      const { outcome, left } = await story.handle.result();
      assert.deepEqual([outcome, left.map(({ vmid }) => vmid)], ['Deleted', [100_000]]);
    });
    const told = world.events.filter(({ message }) => message.includes('for good'));
    assert.deepEqual(
      told.map(({ reason }) => reason),
      ['VmLeftover'],
    );
    assert.match(told[0]?.message ?? '', /100000 on pv1-1 .*qm unlock 100000/);
    assert.equal(world.vms.size, 0);
  });

  it('locked for good keeps the seed of its name, and holds up no deletion', async () => {
    const world = new FakeWorld();
    const stuck = { kind: 'stuck', node: 'pv1-1', lock: 'clone', vmid: 100_000 } as const;
    world.takenVmids.add(100_000);
    world.finds.push({ ...stuck, remedy: 'qm unlock 100000' });
    world.before('deleteSeed', () => {
      const facts = { reason: 'DeletionBlocked', scope: 'provider', vmid: 100_000 };
      const message = 'seed is kept: VM 100000 may need it';
      throw ApplicationFailure.create({ type: 'Transient', message, details: [facts] });
    });
    await tellStory(world, async (story) => {
      await addressAt(story, 100_001);
      await story.deleted();
      assert.equal((await story.handle.result()).outcome, 'Deleted');
    });
    assert.equal(world.vms.size, 0);
    assert.equal(world.seeds.size, 1);
  });
});

describe('a line that has to go back', () => {
  useWorkflowServer();

  it('uploads the seed again when the start misses it', async () => {
    const world = new FakeWorld();
    const message = "volume 'proxy-seeds:iso/seed.iso' does not exist";
    world.fail('startVm', lookAgain('UploadNotConfirmed', message));
    world.before(
      'startVm',
      once(() => {
        world.seeds.clear();
      }),
    );
    await tellStory(world, async (story) => {
      await addressAt(story, 100_000);
      assert.equal(world.seeds.size, 1);
      assert.equal(world.vms.get(100_000)?.starts, 1);
      assert.equal(world.peak, 1);
    });
  });

  it('finds its VM again when a budget runs out, and clones no second one', async () => {
    const world = new FakeWorld();
    const message = 'upload of the seed of VM 100000: task is still running after 2 min';
    // The first wait is that of the clone.
    let waits = 0;
    world.before('awaitTask', () => {
      waits += 1;
      if (waits === 2) world.fail('awaitTask', lookAgain('BudgetExceeded', message));
    });
    await tellStory(world, async (story) => {
      await story.until(() => world.status?.message.includes(message) === true, 'the reason');
      await addressAt(story, 100_000);
      assert.equal(world.peak, 1);
      assert.equal(world.seeds.size, 1);
    });
  });
});

describe('a full house', () => {
  useWorkflowServer();
  const full = (of: string): PlannedFailure =>
    lookAgain('WaitingForSlot', `not yet: 2 of 2 ${of} slots of provider pve are taken`, {
      retryAfterMs: 2_000,
    });

  it('of clones is waited for, and said', async () => {
    const world = new FakeWorld();
    world.fail('cloneTemplate', full('clone'), full('clone'), full('clone'));
    await tellStory(world, async (story) => {
      await story.until(
        () => world.status?.message.includes('2 of 2 clone slots') === true,
        'the wait for a slot',
      );
      assert.notEqual(world.status?.phase, 'Failed');
      await addressAt(story, 100_000);
      assert.equal(world.peak, 1);
    });
  });

  it('of destroys holds up a deletion, which says so and ends when there is room', async () => {
    const world = new FakeWorld();
    world.desired = desiredProxy({ drainSeconds: 0 });
    await tellStory(world, async (story) => {
      await ready(story);
      world.fail('destroyVm', full('destroy'), full('destroy'), full('destroy'));
      await story.deleted();
      await story.until(
        () => world.status?.message.includes('2 of 2 destroy slots') === true,
        'the wait for a slot',
      );
      assert.equal(world.vms.size, 1);
      assert.equal((await story.handle.result()).outcome, 'Deleted');
    });
    assert.equal(world.vms.size, 0);
    assert.equal(world.seeds.size, 0);
  });
});
