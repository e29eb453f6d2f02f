/** The ways a Proxy ends. */
import type { PlannedFailure } from '../../support/fakeWorld.ts';
import { badImage } from '../../support/plannedFailures.ts';
import { gate, ready } from '../../support/storyParts.ts';
import type { RecordedStory } from '../recordedStory.ts';

const forbidden: PlannedFailure = {
  type: 'Permanent',
  message: 'delete of the seed on pv1-1: 403 Permission check failed',
  facts: { reason: 'Forbidden', scope: 'provider', remedy: 'grant Datastore.Allocate' },
};

export const removingStories: RecordedStory[] = [
  {
    name: 'createAndDelete',
    tell: async (story) => {
      await ready(story);
      await story.deleted();
      await story.handle.result();
    },
  },
  {
    name: 'permanentImage',
    world: (world) => world.fail('resolvePlacement', badImage),
    tell: async ({ world, until, deleted, handle }) => {
      await until(() => world.status?.phase === 'Failed', 'Failed');
      await deleted();
      await handle.result();
    },
  },
  {
    name: 'deleteWhileCloning',
    tell: async ({ world, until, deleted, handle }) => {
      const cloning = gate();
      world.before('awaitTask', cloning.enterOnce);
      await until(cloning.reached, 'the clone running');
      await deleted();
      await until(() => world.status?.phase === 'Deleting', 'Deleting');
      cloning.open();
      await handle.result();
    },
  },
  {
    name: 'deleteWhileBooting',
    tell: async ({ world, until, deleted, handle }) => {
      const silent = gate();
      world.before('pollAgent', silent.enter);
      await until(silent.reached, 'the agent being asked');
      await deleted();
      await handle.result();
    },
  },
  {
    name: 'deletionPaused',
    tell: async (story) => {
      const { world, until } = story;
      await ready(story);
      await story.changed({ paused: true });
      await story.deleted();
      await until(() => world.status?.message.includes('the deletion waits') === true, 'waits');
      await story.changed({ paused: false });
      await story.handle.result();
    },
  },
  {
    name: 'deletionForbidden',
    tell: async (story) => {
      const { world, until } = story;
      await ready(story);
      world.fail('deleteSeed', forbidden);
      await story.deleted();
      await until(() => world.status?.phase === 'Deleting', 'Deleting');
      await story.handle.result();
    },
  },
  {
    name: 'forceDeleted',
    tell: async (story) => {
      const { world, until, handle } = story;
      await ready(story);
      await story.changed({ drainSeconds: 0 });
      const stuck = gate();
      world.before('destroyVm', stuck.enter);
      await story.deleted();
      await until(stuck.reached, 'the destroy under way');
      await handle.signal('forceDelete');
      await handle.result();
      stuck.open();
    },
  },
  {
    name: 'retained',
    world: (world) => {
      world.desired = world.desired && { ...world.desired, deletionPolicy: 'Retain' };
    },
    tell: async (story) => {
      await ready(story);
      await story.deleted();
      await story.handle.result();
    },
  },
  {
    name: 'cloneAborted',
    world: (world) => {
      world.abortClones = true;
    },
    tell: async ({ world, until, deleted, handle }) => {
      const cloning = gate();
      world.before('awaitTask', cloning.enterOnce);
      await until(cloning.reached, 'the clone running');
      await deleted();
      await handle.result();
      cloning.open();
    },
  },
  {
    name: 'deletedBeforeItWasClaimed',
    world: (world) => {
      world.desired = null;
    },
    tell: async ({ handle }) => {
      await handle.result();
    },
  },
  {
    name: 'deletedAfterLostWorkflow',
    world: (world) => {
      const name = 'proxy-p1-abcdef-11111111-eeee';
      const vm = { vmid: 100003, name, specHash: 'eeee', configured: true, ip: '192.0.2.13' };
      world.vms.set(100003, { ...vm, power: 'running' });
      world.seeds.add(`${name}-seed.iso`);
      world.finalizer = true;
      world.deleting = true;
    },
    tell: async ({ handle }) => {
      await handle.result();
    },
  },
];
