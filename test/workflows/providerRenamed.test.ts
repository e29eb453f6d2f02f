import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApplicationFailure } from '@temporalio/common';
import { Worker } from '@temporalio/worker';
import type { FailureFacts } from '../../workflows/contract/errors.ts';
import { providerQueue } from '../../workflows/contract/messages.ts';
import { FakeWorld } from '../support/fakeWorld.ts';
import { tellStory, useWorkflowServer, type Story } from '../support/workflowHarness.ts';

/** A Proxy whose VM was made when its provider `pve` was named `lab`, which nobody serves any more. */
function renamedWorld(): FakeWorld {
  const world = new FakeWorld();
  const { vmName: name } = world.planFor('aaaa', 'lab', 'Delete');
  const ip = '192.0.2.10';
  const state = { power: 'running', configured: true } as const;
  world.vms.set(100_000, { vmid: 100_000, name, specHash: 'aaaa', ip, ...state });
  world.seeds.add(`${name}-seed.iso`);
  world.finalizer = true;
  const vm = { vmid: 100_000, node: 'pv1-1', vmName: name, provider: 'lab', specHash: 'aaaa', ip };
  world.recorded = { ...world.recorded, ...vm, healthy: true, everReady: true };
  return world;
}

/** The worker's config has lost `lab`: every step of it is refused. */
async function tellHere(world: FakeWorld, tell: (story: Story) => Promise<void>): Promise<void> {
  await tellStory(world, async (story) => {
    const facts: FailureFacts = { reason: 'ProviderUnknown', scope: 'provider' };
    const refuse = (): Promise<never> =>
      Promise.reject(
        ApplicationFailure.create({
          type: 'Transient',
          message: 'no provider is named "lab"',
          nonRetryable: true,
          details: [facts],
        }),
      );
    const activities = Object.fromEntries(Object.keys(world.steps()).map((name) => [name, refuse]));
    const worker = await Worker.create({
      connection: story.env.nativeConnection,
      taskQueue: providerQueue('lab'),
      activities,
    });
    await worker.runUntil(tell(story));
  });
}

describe('a provider that has another name now', () => {
  useWorkflowServer();

  it('removes the old VM of a replacement where it is listed', async () => {
    const world = renamedWorld();
    // The name of the provider is part of the spec.
    world.desired = world.desired && { ...world.desired, specHash: 'bbbb' };
    await tellHere(world, async ({ until, health, skip }) => {
      await until(() => world.status?.replacement?.ip === '192.0.2.11', 'the new VM');
      await health(true, '192.0.2.11');
      await until(() => world.status?.ip === '192.0.2.11', 'the switch');
      await skip(31_000);
      await skip(5_000);
      await until(() => !world.vms.has(100_000), 'the old VM is gone');
      await until(() => world.seeds.size === 1, 'its seed, too');
    });
  });

  it('removes the VM of a deleted Proxy', async () => {
    const world = renamedWorld();
    world.deleting = true;
    await tellHere(world, async ({ handle, until, skip }) => {
      await skip(31_000);
      await skip(5_000);
      await until(() => world.vms.size === 0, 'the VM is gone');
      assert.equal((await handle.result()).outcome, 'Deleted');
      assert.equal(world.seeds.size, 0);
    });
  });

  it('leaves a VM alone that only has the VMID', async () => {
    const world = renamedWorld();
    world.desired = world.desired && { ...world.desired, specHash: 'bbbb' };
    world.at(100_000).name = 'proxy-of-somebody-else';
    await tellHere(world, async ({ until, health, skip }) => {
      await until(() => world.status?.replacement?.ip === '192.0.2.11', 'the new VM');
      await health(true, '192.0.2.11');
      await until(() => world.status?.ip === '192.0.2.11', 'the switch');
      await skip(31_000);
      await skip(5_000);
      await until(() => world.status?.message.includes('is named "lab"') === true, 'it waits');
      assert.equal(world.vms.has(100_000), true);
    });
  });
});
