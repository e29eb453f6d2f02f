/** What happens to a Proxy that is there: changes of its spec, of its health, and of the world around it. */
import { gate, ready } from '../../support/storyParts.ts';
import type { Story } from '../../support/workflowHarness.ts';
import type { RecordedStory } from '../recordedStory.ts';

async function replaced(story: Story): Promise<void> {
  const { world, until, changed, health } = story;
  await changed({ specHash: 'bbbb' });
  await until(() => world.status?.replacement?.ip === '192.0.2.11', 'the replacement');
  await health(true, '192.0.2.11');
  await until(() => world.status?.ip === '192.0.2.11', 'the switch');
}

export const changingStories: RecordedStory[] = [
  {
    name: 'specChangeCreateFirst',
    tell: async (story) => {
      await ready(story);
      await replaced(story);
      await story.skip(31_000);
      await story.until(() => story.world.vms.size === 1, 'the old VM gone');
    },
  },
  {
    name: 'specChangeDeleteFirst',
    world: (world) => {
      world.desired = world.desired && { ...world.desired, replaceStrategy: 'DeleteFirst' };
    },
    tell: async (story) => {
      const { world, until } = story;
      await ready(story);
      await story.changed({ specHash: 'bbbb' });
      await story.skip(31_000);
      await until(() => world.status?.specHash === 'bbbb' && world.status.ip !== null, 'bbbb');
    },
  },
  {
    name: 'specChangedBackWhileDraining',
    tell: async (story) => {
      const { world, until } = story;
      await ready(story);
      await replaced(story);
      await story.changed({ specHash: 'aaaa' });
      // What was on its way out counts as healthy only once it was probed again.
      await until(() => world.status?.replacement?.ip === '192.0.2.10', 'the old address');
      await story.health(true);
      await until(() => world.status?.ip === '192.0.2.10', 'the switch back');
      await story.skip(31_000);
      await until(() => world.vms.size === 1, 'the second VM gone');
    },
  },
  {
    name: 'specChangedTwiceMidLine',
    tell: async ({ world, until, changed, skip }) => {
      const silent = gate();
      world.before('pollAgent', silent.enterOnce);
      await until(silent.reached, 'the agent being asked');
      await changed({ specHash: 'bbbb' });
      await changed({ specHash: 'cccc' });
      await until(() => world.status?.specHash === 'cccc' && world.status.ip !== null, 'cccc');
      await skip(31_000);
      await until(() => world.vms.size === 1, 'one VM');
    },
  },
  {
    name: 'replacementLateThenGivenUp',
    tell: async (story) => {
      const { world, until } = story;
      await ready(story);
      await story.changed({ specHash: 'bbbb' });
      await until(() => world.status?.replacement?.ip === '192.0.2.11', 'the replacement');
      await story.skip(14 * 60_000 + 50_000);
      await story.skip(20_000);
      await until(
        () =>
          world.status?.conditions.some(({ reason }) => reason === 'ReplacementFailed') === true,
        'ReplacementFailed',
      );
      await story.changed({ specHash: 'aaaa' });
      await until(() => world.vms.size === 1, 'the replacement gone');
    },
  },
  {
    name: 'unhealthyAndBack',
    tell: async (story) => {
      const { world, until, health } = story;
      await ready(story);
      await health(false);
      await until(() => world.status?.phase === 'Running', 'Running');
      await health(true);
      await until(() => world.status?.phase === 'Ready', 'Ready');
    },
  },
  {
    name: 'restoredFromStatus',
    world: (world) => {
      const name = 'proxy-p1-abcdef-11111111-aaaa';
      const vm = { vmid: 100000, name, specHash: 'aaaa', configured: true, ip: '192.0.2.10' };
      world.vms.set(100000, { ...vm, power: 'running' });
      world.seeds.add(`${name}-seed.iso`);
      world.finalizer = true;
      world.recorded = {
        ...world.recorded,
        vmid: 100000,
        node: 'pv1-1',
        vmName: name,
        provider: 'pve',
        specHash: 'aaaa',
        ip: '192.0.2.10',
        healthy: true,
        everReady: true,
      };
    },
    tell: async ({ world, until }) => {
      await until(() => world.status?.ip === '192.0.2.10', 'the address of before');
    },
  },
  {
    name: 'deletionPolicyChanged',
    tell: async (story) => {
      const { world, until } = story;
      await ready(story);
      await story.changed({ deletionPolicy: 'Retain' });
      await until(() => world.vms.get(100_000)?.policy === 'Retain', 'the mark');
    },
  },
  {
    name: 'objectMissing',
    tell: async (story) => {
      const { world, handle } = story;
      await ready(story);
      world.desired = null;
      await handle.signal('desiredChanged', { generation: 1, deleting: false });
    },
  },
  {
    name: 'continuedAsNew',
    lastRun: 'resumedAfterContinueAsNew',
    settings: { suggestContinueAsNewAt: 60 },
    tell: async (story) => {
      const { world, handle, until } = story;
      await ready(story);
      await story.health(false);
      await until(() => world.status?.phase === 'Running', 'Running');
      world.desired = world.desired && { ...world.desired, drainSeconds: 0 };
      await story.deleted();
      await handle.result();
    },
  },
];
