/** A deletion of a Proxy that never got a VM, or whose credentials are gone (cases.md 17). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeWorld, type PlannedFailure } from '../support/fakeWorld.ts';
import { gate, ready } from '../support/storyParts.ts';
import { tellStory, useWorkflowServer } from '../support/workflowHarness.ts';

const noCredentials: PlannedFailure = {
  type: 'Transient',
  message: 'provider pve: the token file /etc/proxy-operator/proxmox/token cannot be read',
  facts: { reason: 'CredentialsUnavailable', scope: 'provider' },
};

/** Fails every step that would ask the provider for something about a deletion. */
function forbidProvider(world: FakeWorld): void {
  for (const step of ['listManagedVms', 'stopVm', 'destroyVm', 'deleteSeed'] as const) {
    world.before(step, () => {
      throw new Error(`${step}: the provider was asked`);
    });
  }
}

describe('a deletion', () => {
  useWorkflowServer();

  it('of a Proxy whose clone was never sent ends at once without the provider, though its credentials are missing', async () => {
    const world = new FakeWorld();
    world.fail('allocateVmid', noCredentials, noCredentials, noCredentials, noCredentials);
    forbidProvider(world);
    await tellStory(world, async ({ until, deleted, handle }) => {
      await until(() => world.status?.message.includes('token file') === true, 'why');
      await deleted();
      assert.equal((await handle.result()).outcome, 'Deleted');
    });
    assert.deepEqual([world.vms.size, world.finalizer], [0, false]);
  });

  it('that comes between the choice of the VMID and the clone keeps the clone from being sent', async () => {
    const world = new FakeWorld();
    const choosing = gate();
    world.before('allocateVmid', choosing.enter);
    forbidProvider(world);
    await tellStory(world, async ({ until, deleted, handle }) => {
      await until(choosing.reached, 'a VMID being chosen');
      await deleted();
      assert.equal((await handle.result()).outcome, 'Deleted');
      choosing.open();
    });
    assert.deepEqual([world.peak, world.finalizer], [0, false]);
  });

  it('waits for credentials that went after the clone was sent, says so, and goes on when they are back', async () => {
    const world = new FakeWorld();
    world.desired = world.desired && { ...world.desired, drainSeconds: 0 };
    await tellStory(world, async (story) => {
      await ready(story);
      world.fail('listManagedVms', noCredentials);
      world.fail('stopVm', noCredentials, noCredentials);
      await story.deleted();
      const reconciling = (): string | undefined =>
        world.status?.conditions.find(({ type }) => type === 'Reconciling')?.reason;
      await story.until(() => reconciling() === 'CredentialsUnavailable', 'the wait');
      assert.deepEqual([world.vms.size, world.finalizer], [1, true]);
      assert.equal((await story.handle.result()).outcome, 'Deleted');
    });
    assert.deepEqual([world.vms.size, world.seeds.size, world.finalizer], [0, 0, false]);
  });

  it('finds by its mark the VM of a run that Temporal lost, also when the status names none', async () => {
    const world = new FakeWorld();
    world.finalizer = true;
    world.deleting = true;
    const name = 'proxy-p1-abcdef-11111111-aaaa';
    const vm = { vmid: 100_004, name, specHash: 'aaaa', configured: true, ip: '192.0.2.14' };
    world.vms.set(100_004, { ...vm, power: 'running' });
    world.seeds.add(`${name}-seed.iso`);
    await tellStory(world, async ({ handle }) => {
      assert.equal((await handle.result()).outcome, 'Deleted');
    });
    assert.deepEqual([world.vms.size, world.seeds.size], [0, 0]);
  });
});
