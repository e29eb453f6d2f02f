/** What a Proxy does about a VM that was seen to differ. */
import type { FakeVm, FakeWorld } from '../../support/fakeWorld.ts';
import { ready } from '../../support/storyParts.ts';
import type { Story } from '../../support/workflowHarness.ts';
import type { RecordedStory } from '../recordedStory.ts';

function vmOf(world: FakeWorld): FakeVm {
  const [vm] = world.vms.values();
  if (vm === undefined) throw new Error('there is no VM');
  return vm;
}

async function observe({ handle }: Story): Promise<void> {
  await handle.signal('observed', {});
}

export const repairingStories: RecordedStory[] = [
  {
    name: 'stoppedThenStarted',
    tell: async (story) => {
      await ready(story);
      const { world, until, health } = story;
      vmOf(world).power = 'stopped';
      await observe(story);
      await until(() => world.status?.power === 'running', 'it runs again');
      await health(true);
      await until(() => world.status?.phase === 'Ready', 'Ready again');
    },
  },
  {
    name: 'stopsAgainAndAgain',
    tell: async (story) => {
      await ready(story);
      const { world, until, skip, handle } = story;
      const vm = vmOf(world);
      const stop = async (): Promise<void> => {
        vm.power = 'stopped';
        await observe(story);
      };
      await stop();
      await until(() => vm.power === 'running' && world.status?.power === 'running', 'at once');
      await stop();
      await until(() => world.status?.message.includes('2. time') === true, 'it waits');
      await skip(61_000);
      await until(() => vm.power === 'running' && world.status?.power === 'running', 'later');
      await stop();
      await until(() => world.status?.message.includes('3. time') === true, 'it waits again');
      await handle.signal('retry');
      await until(() => vm.power === 'running' && world.status?.power === 'running', 'asked to');
    },
  },
  {
    name: 'vanishedThenMadeAgain',
    tell: async (story) => {
      await ready(story);
      const { world, until } = story;
      world.vms.clear();
      await observe(story);
      await until(() => world.vms.size === 1 && world.status?.phase === 'Running', 'made again');
      await ready(story);
    },
  },
  {
    name: 'movedEditedAndReaddressed',
    tell: async (story) => {
      await ready(story);
      const { world, until } = story;
      Object.assign(vmOf(world), { node: 'pv1-2', untagged: true, ip: '192.0.2.55' });
      await observe(story);
      await until(() => world.status?.ip === '192.0.2.55', 'the new address');
    },
  },
  {
    name: 'seedLostBeforeTheStart',
    tell: async (story) => {
      await ready(story);
      const { world, until } = story;
      world.seeds.clear();
      vmOf(world).power = 'stopped';
      await observe(story);
      await until(() => world.status?.power === 'running', 'it runs again');
    },
  },
  {
    name: 'nodeUnreachableAndBack',
    tell: async (story) => {
      await ready(story);
      const { world, until } = story;
      world.deadNodes.add('pv1-1');
      await observe(story);
      await until(() => world.status?.power === 'unreachable', 'unreachable');
      world.deadNodes.clear();
      await observe(story);
      await until(() => world.status?.power === 'running', 'back');
    },
  },
  {
    name: 'stoppedWhilePaused',
    tell: async (story) => {
      await ready(story);
      const { world, until, changed } = story;
      await changed({ paused: true });
      await until(() => world.status?.message.includes('paused') === true, 'paused');
      vmOf(world).power = 'stopped';
      await observe(story);
      await until(() => world.status?.power === 'stopped', 'told');
      await changed({ paused: false });
      await until(() => world.status?.power === 'running', 'started');
    },
  },
];
