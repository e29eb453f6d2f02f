/** What stories of a VM that was seen to differ have in common. */
import assert from 'node:assert/strict';
import { FakeWorld, type FakeVm } from './fakeWorld.ts';
import { ready } from './storyParts.ts';
import { tellStory, type Story } from './workflowHarness.ts';

export const ip = '192.0.2.10';

export function onlyVm(world: FakeWorld): FakeVm {
  const [vm, ...others] = world.vms.values();
  assert.ok(vm);
  assert.equal(others.length, 0);
  return vm;
}

export function eventReasons(world: FakeWorld): string[] {
  return world.events.map(({ reason }) => reason);
}

export function conditionOf(world: FakeWorld, type: string): string {
  const found = world.status?.conditions.find((condition) => condition.type === type);
  return found === undefined ? 'none' : `${found.status} ${found.reason}`;
}

export function observed({ handle }: Story, news: { heldBy?: string | null } = {}): Promise<void> {
  return handle.signal('observed', news);
}

/** Tells a story of a VM that is Ready and then found otherwise. */
export async function onReady(
  tell: (story: Story, vm: FakeVm) => Promise<void>,
): Promise<FakeWorld> {
  const world = new FakeWorld();
  await tellStory(world, async (story) => {
    await ready(story);
    await tell(story, onlyVm(world));
  });
  return world;
}
