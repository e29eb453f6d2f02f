/** What a person asked for, and what became of it, is there to be read afterwards. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeWorld } from '../support/fakeWorld.ts';
import { badImage } from '../support/plannedFailures.ts';
import { gate, ready } from '../support/storyParts.ts';
import { tellStory, useWorkflowServer, type Story } from '../support/workflowHarness.ts';

function messages(world: FakeWorld, reason: string): string[] {
  return world.events.filter((event) => event.reason === reason).map(({ message }) => message);
}

/** A deletion whose VM cannot be removed. */
async function stuckDeletion(story: Story): Promise<ReturnType<typeof gate>> {
  const { world, until } = story;
  await ready(story);
  await story.changed({ drainSeconds: 0 });
  const stuck = gate();
  world.before('destroyVm', stuck.enter);
  await story.deleted();
  await until(stuck.reached, 'the destroy under way');
  return stuck;
}

describe('the Events of a Proxy', () => {
  useWorkflowServer();

  it('tell that its health was lost and came back, once each, with the reason of the probe', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await ready(story);
      await story.health(false);
      await story.until(() => world.status?.phase === 'Running', 'Running');
      await story.health(false);
      await story.health(true);
      await story.until(() => world.status?.phase === 'Ready', 'Ready again');
      await story.settled();
    });
    assert.deepEqual(messages(world, 'Unhealthy'), [
      'no request goes through the proxy at 192.0.2.10:3128 (ConnectionRefused): 192.0.2.10:3128 refused the connection',
    ]);
    assert.equal(messages(world, 'Healthy').length, 1);
  });

  it('tell nothing of the health of a VM that never served', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await story.until(() => world.status?.ip === '192.0.2.10', 'an address');
      await story.health(false);
      await story.until(() => world.status?.healthy === false, 'unhealthy');
      await story.health(true);
      await story.until(() => world.status?.phase === 'Ready', 'Ready');
    });
    assert.deepEqual([...messages(world, 'Unhealthy'), ...messages(world, 'Healthy')], []);
    assert.equal(messages(world, 'Ready').length, 1);
  });

  it('tell that a deletion begins, once', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await ready(story);
      await story.deleted();
      await story.until(() => world.status?.phase === 'Deleting', 'Deleting');
      await story.handle.signal('desiredChanged', { generation: 1, deleting: true });
      await story.handle.result();
    });
    assert.deepEqual(messages(world, 'Deleting'), [
      'the Proxy is being deleted: it leaves the discovery API, its VM drains for 30 s',
    ]);
  });
});

describe('a retry', () => {
  useWorkflowServer();

  it('by annotation is told with its value, which the status shows as handled', async () => {
    const world = new FakeWorld();
    world.fail('resolvePlacement', badImage);
    await tellStory(world, async (story) => {
      await story.until(() => world.status?.phase === 'Failed', 'Failed');
      await story.changed({ generation: 1, retry: 'monday' });
      await story.until(() => world.status?.ip === '192.0.2.10', 'an address');
      await story.changed({ generation: 1, retry: 'monday' });
      await story.settled();
    });
    assert.deepEqual(messages(world, 'RetryRequested'), [
      'retry requested by annotation "monday": trying again now',
    ]);
    assert.equal(world.status?.handled.retry, 'monday');
  });

  it('by signal is told, and leaves what is handled as it is', async () => {
    const world = new FakeWorld();
    world.fail('resolvePlacement', badImage);
    await tellStory(world, async (story) => {
      await story.until(() => world.status?.phase === 'Failed', 'Failed');
      await story.handle.signal('retry');
      await story.until(() => world.status?.ip === '192.0.2.10', 'an address');
    });
    assert.deepEqual(messages(world, 'RetryRequested'), [
      'retry requested by signal: trying again now',
    ]);
    assert.equal(world.status?.handled.retry, null);
  });
});

describe('a forced deletion', () => {
  useWorkflowServer();

  const left = {
    provider: 'pve',
    vmid: 100_000,
    node: 'pv1-1',
    upid: null,
    seedFile: 'proxy-p1-abcdef-11111111-aaaa-seed.iso',
  };
  const ways: [string, (story: Story) => Promise<void>][] = [
    ['signal', (story) => story.handle.signal('forceDelete')],
    ['annotation "now"', (story) => story.changed({ generation: 1, forceDelete: 'now' })],
  ];
  for (const [way, ask] of ways) {
    it(`by ${way} is told before and after, and its result names what stays`, async () => {
      const world = new FakeWorld();
      await tellStory(world, async (story) => {
        const stuck = await stuckDeletion(story);
        await ask(story);
        assert.deepEqual(await story.handle.result(), { outcome: 'ForceDeleted', left: [left] });
        stuck.open();
      });
      assert.deepEqual(messages(world, 'ForceDeleteRequested'), [
        `force delete requested by ${way}: the Proxy is let go as it stands`,
      ]);
      assert.match(messages(world, 'ForceDeleted').join(), /left behind: VM 100000 on pv1-1, seed/);
    });
  }

  it('after its VM was destroyed names only the seed that may be there', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await ready(story);
      const stuck = gate();
      world.before('deleteSeed', stuck.enter);
      await story.changed({ drainSeconds: 0 });
      await story.deleted();
      await story.until(stuck.reached, 'the seed being deleted');
      await story.handle.signal('forceDelete');
      const seedOnly = { ...left, vmid: null };
      assert.deepEqual((await story.handle.result()).left, [seedOnly]);
      stuck.open();
    });
    const [told = ''] = messages(world, 'ForceDeleted');
    assert.equal(told, `force delete left behind: seed ${left.seedFile} on pv1-1`);
  });

  it('says how to keep a VM that was to stay and whose mark does not say so yet', async () => {
    const world = new FakeWorld();
    const remedy = /its mark does not say Retain yet.*qm set 100000 --protection 1/;
    await tellStory(world, async (story) => {
      await ready(story);
      await story.changed({ deletionPolicy: 'Retain', paused: true });
      await story.deleted();
      await story.until(() => world.status?.phase === 'Deleting', 'the deletion');
      await story.handle.signal('forceDelete');
      const [kept] = (await story.handle.result()).left;
      assert.match(kept?.remedy ?? '', remedy);
    });
    assert.match(messages(world, 'ForceDeleted').join(), remedy);
  });

  it('that came too early is told to have been ignored, and its annotation is used up', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await ready(story);
      await story.changed({ generation: 1, forceDelete: 'early' });
      await story.until(() => world.status?.handled.forceDelete === 'early', 'it handled');
      await story.changed({ drainSeconds: 0 });
      await story.deleted();
      assert.equal((await story.handle.result()).outcome, 'Deleted');
    });
    const [ignored, ...others] = messages(world, 'ForceDeleteIgnored');
    assert.match(ignored ?? '', /by annotation "early" ignored: delete the Proxy first/);
    assert.deepEqual([...others, ...messages(world, 'ForceDeleteRequested')], []);
    assert.equal(world.vms.size, 0);
  });
});
