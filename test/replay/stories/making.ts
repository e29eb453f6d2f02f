/** From nothing to Ready, and what may come in between. */
import type { FakeWorld, PlannedFailure } from '../../support/fakeWorld.ts';
import { badImage, locked, unauthorized } from '../../support/plannedFailures.ts';
import { gate, ready } from '../../support/storyParts.ts';
import type { RecordedStory } from '../recordedStory.ts';

const refused: PlannedFailure = {
  type: 'Transient',
  message: 'clone to VM 100000 on pv1-1: connection refused',
  facts: { reason: 'Unreachable', scope: 'provider', node: 'pv1-1' },
};
const unanswered: PlannedFailure = {
  ...refused,
  facts: { ...refused.facts, outcomeUnknown: true },
};
const tooLong: PlannedFailure = {
  type: 'Transient',
  message: 'clone to VM 100000: task UPID:pv1-1:clone is still running after 10 min',
  facts: { reason: 'BudgetExceeded', scope: 'provider', vmid: 100000, goBack: true },
};
const kubernetesAway: PlannedFailure = {
  type: 'Transient',
  message: 'the API server does not answer',
  facts: { reason: 'KubernetesUnavailable', scope: 'proxy' },
};

function vmOfBefore(world: FakeWorld, power: 'running' | 'stopped'): void {
  const name = 'proxy-p1-abcdef-11111111-aaaa';
  const vm = { vmid: 100000, name, specHash: 'aaaa', configured: true, ip: '192.0.2.10' };
  world.vms.set(100000, { ...vm, power });
  world.seeds.add(`${name}-seed.iso`);
}

export const makingStories: RecordedStory[] = [
  { name: 'createReady', tell: ready },
  {
    name: 'transientClone',
    world: (world) => world.fail('cloneTemplate', refused, refused, refused),
    tell: async (story) => {
      await story.skip(10_000);
      await ready(story);
    },
  },
  {
    name: 'lockOutlivesItsBudget',
    world: (world) => world.fail('allocateVmid', ...Array.from({ length: 12 }, () => locked)),
    tell: async (story) => {
      await story.skip(60 * 60_000);
      await ready(story);
    },
  },
  {
    name: 'unknownCloneOutcome',
    world: (world) => world.fail('cloneTemplate', unanswered),
    tell: async (story) => {
      await story.skip(60_000);
      await ready(story);
    },
  },
  {
    name: 'cloneOutlivesItsBudget',
    world: (world) => world.fail('awaitTask', tooLong),
    tell: async (story) => {
      await story.skip(3_000);
      await ready(story);
    },
  },
  {
    name: 'latchedThenRetried',
    world: (world) => world.fail('resolvePlacement', badImage),
    tell: async (story) => {
      const { world, until, handle } = story;
      await until(() => world.status?.phase === 'Failed', 'Failed');
      await handle.signal('retry');
      await ready(story);
    },
  },
  {
    name: 'latchedThenChanged',
    world: (world) => world.fail('resolvePlacement', badImage),
    tell: async ({ world, until, changed }) => {
      await until(() => world.status?.phase === 'Failed', 'Failed');
      await changed({ specHash: 'bbbb' });
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
    },
  },
  {
    name: 'providerFailsThenChanges',
    world: (world) => world.fail('allocateVmid', unauthorized),
    tell: async (story) => {
      const { world, until, handle } = story;
      await until(() => world.status?.phase === 'Failed', 'Failed');
      await handle.signal('providerChanged');
      await ready(story);
    },
  },
  {
    name: 'cloudInitUnavailable',
    world: (world) => {
      const cloudInitProblem = 'Secret egress/p1-cloud-init does not exist';
      world.desired = world.desired && { ...world.desired, specHash: null, cloudInitProblem };
    },
    tell: async (story) => {
      const { world, until } = story;
      await until(() => world.status?.message.includes('does not exist') === true, 'the problem');
      const present = { specHash: 'aaaa', cloudInitProblem: null };
      world.desired = world.desired && { ...world.desired, ...present };
      await story.skip(10_000);
      await ready(story);
    },
  },
  {
    name: 'providerUnknown',
    world: (world) => {
      const providerProblem = 'no provider is named "nowhere"; configured are: pve';
      world.desired = world.desired && { ...world.desired, provider: 'nowhere', providerProblem };
    },
    tell: async (story) => {
      const { world, until, changed } = story;
      await until(() => world.status?.message.includes('configured are') === true, 'the problem');
      await changed({ provider: 'pve', providerProblem: null, specHash: 'bbbb' });
      await ready(story);
    },
  },
  {
    name: 'adoptedWhileCloning',
    world: (world) => {
      vmOfBefore(world, 'stopped');
      world.finds.push({ kind: 'cloning', vmid: 100000, node: 'pv1-1', upid: 'UPID:pv1-1:clone:' });
    },
    tell: ready,
  },
  { name: 'adoptedRunning', world: (world) => vmOfBefore(world, 'running'), tell: ready },
  {
    name: 'incompleteMadeAgain',
    world: (world) => {
      vmOfBefore(world, 'stopped');
      world.finds.push({ kind: 'incomplete', vmid: 100000, node: 'pv1-1' });
    },
    tell: ready,
  },
  {
    name: 'lockedForGood',
    world: (world) => {
      const remedy = 'qm unlock 100000, then qm destroy 100000, on pv1-1';
      world.finds.push({ kind: 'stuck', vmid: 100000, node: 'pv1-1', lock: 'clone', remedy });
    },
    tell: async (story) => {
      const { world, until, health } = story;
      await until(() => world.status?.ip === '192.0.2.11', 'an address');
      await health(true, '192.0.2.11');
      await until(() => world.status?.phase === 'Ready', 'Ready');
    },
  },
  {
    name: 'pausedMidLine',
    tell: async (story) => {
      const { world, until, changed } = story;
      const cloning = gate();
      world.before('awaitTask', cloning.enterOnce);
      await until(cloning.reached, 'the clone running');
      await changed({ paused: true });
      cloning.open();
      await until(() => world.status?.message.startsWith('paused') === true, 'paused');
      await changed({ paused: false });
      await ready(story);
    },
  },
  ...workerRestarts(),
  {
    name: 'kubernetesAway',
    world: (world) => {
      world.fail('claimProxy', kubernetesAway, kubernetesAway);
      world.fail('publishStatus', kubernetesAway, kubernetesAway);
    },
    tell: async (story) => {
      await story.skip(10_000);
      await ready(story);
    },
  },
  {
    name: 'externalProxy',
    world: (world) => {
      const external = { mode: 'External', provider: '', address: '198.51.100.7' } as const;
      world.desired = world.desired && { ...world.desired, ...external };
    },
    tell: async ({ world, until, health, changed, deleted, handle }) => {
      await until(() => world.status?.phase === 'Running', 'an address');
      await health(true, '198.51.100.7');
      await until(() => world.status?.phase === 'Ready', 'Ready');
      await changed({ address: '198.51.100.8' });
      await until(() => world.status?.ip === '198.51.100.8', 'the other address');
      await deleted();
      await handle.result();
    },
  },
];

function workerRestarts(): RecordedStory[] {
  return (['awaitTask', 'uploadSeed'] as const).map((step) => ({
    name: step === 'awaitTask' ? 'workerRestartDuringWait' : 'workerRestartDuringWrite',
    settings: { realTime: true },
    tell: async (story) => {
      const under = gate();
      story.world.before(step, under.enterOnce);
      await story.until(under.reached, `${step} under way`);
      await story.restartWorkers();
      await ready(story);
    },
  }));
}
