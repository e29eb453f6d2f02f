/** A Proxy whose provider is in no config: it says so at once, and goes on when somebody serves it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { desiredProxy, FakeWorld } from '../support/fakeWorld.ts';
import { gate, ready } from '../support/storyParts.ts';
import { tellStory, useWorkflowServer } from '../support/workflowHarness.ts';

useWorkflowServer();

const problem =
  'no provider is named "nowhere"; add it to the providers config; configured are: pve';

function worldAt(provider: string): FakeWorld {
  const world = new FakeWorld();
  world.desired = desiredProxy({ provider, providerProblem: problem });
  return world;
}

describe('an unknown provider', () => {
  it('is named at once with the configured ones, while nobody takes the step', async () => {
    const world = worldAt('nowhere');
    await tellStory(world, async ({ until, changed, state }) => {
      await until(() => world.status?.message.includes(problem) === true, 'the configured names');
      const { status } = world;
      assert.equal(status?.phase, 'Pending');
      const provisioned = status.conditions.find(({ type }) => type === 'Provisioned');
      assert.equal(provisioned?.reason, 'ProviderUnknown');
      assert.equal((await state()).step, 'resolvePlacement');
      assert.deepEqual(
        world.events.map(({ reason }) => reason),
        ['ProviderUnknown'],
      );
      await changed({ provider: 'pve', providerProblem: null, specHash: 'bbbb' });
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
      assert.equal(world.vms.size, 1);
    });
  });

  it('is named at once also after an edit, while the old VM serves', async () => {
    const world = new FakeWorld();
    await tellStory(world, async (story) => {
      await ready(story);
      await story.changed({ provider: 'nowhere', providerProblem: problem, specHash: 'bbbb' });
      await story.until(() => world.status?.message.includes(problem) === true, 'its name');
      assert.equal(world.status?.phase, 'Ready');
      const reconciling = world.status.conditions.find(({ type }) => type === 'Reconciling');
      assert.deepEqual([reconciling?.status, reconciling?.reason], ['True', 'ProviderUnknown']);
      // Another worker may serve it.
      assert.equal((await story.state()).step, 'resolvePlacement');
    });
  });

  it('is no hindrance when another worker serves it', async () => {
    const world = worldAt('pve');
    await tellStory(world, async ({ until }) => {
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
      assert.ok(!JSON.stringify(world.status).includes(problem));
    });
  });

  it('is asked about again when the config changed, and explains a step that nobody took', async () => {
    const world = worldAt('pve');
    // Tried again when the story says so, not by time.
    const retryAfterMs = 10 * 60_000;
    const unserved = {
      type: 'Transient',
      message: 'no worker took this step within a minute',
      facts: {
        reason: 'ProviderNotServed',
        scope: 'provider',
        remedy: 'start a worker',
        retryAfterMs,
      },
    } as const;
    world.fail('resolvePlacement', unserved, unserved);
    await tellStory(world, async ({ until, handle }) => {
      const both = `resolvePlacement: no worker took this step within a minute: ${problem}`;
      await until(() => world.status?.message === both, 'both sentences');
      const again = gate();
      world.before('resolvePlacement', again.enter);
      const told = world.statuses.length;
      world.desired = desiredProxy({ provider: 'pve' });
      await handle.signal('providerChanged');
      // Each reading of the object is followed by a status.
      await until(() => again.reached() && world.statuses.length > told, 'tried and read again');
      again.open();
      await until(() => world.status?.message.endsWith('— start a worker') === true, 'one only');
      await handle.signal('providerChanged');
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
    });
  });
});
