import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApplicationFailure } from '@temporalio/common';
import { FakeWorld, type FakeVm } from '../support/fakeWorld.ts';
import { tellStory, useWorkflowServer } from '../support/workflowHarness.ts';

/** A world in which a VM of the Proxy is there already, made by a run nobody remembers. */
function worldWith(fields: Partial<FakeVm>): FakeWorld {
  const world = new FakeWorld();
  world.finalizer = true;
  const vm = { vmid: 100_007, name: 'proxy-p1-abcdef-11111111-aaaa', specHash: 'aaaa' };
  const state = { power: 'stopped', configured: false, ip: '192.0.2.77' } as const;
  world.vms.set(vm.vmid, { ...vm, ...state, ...fields });
  return world;
}

describe('a VM of a run that was lost', () => {
  useWorkflowServer();

  it('is finished and serves, and no other is made', async () => {
    const world = worldWith({});
    await tellStory(world, async ({ until }) => {
      await until(() => world.status?.ip === '192.0.2.77', 'its address');
    });
    assert.equal(world.status?.vmid, 100_007);
    assert.equal(world.status?.providerID, 'vms/100007/proxy-p1-abcdef-11111111-aaaa');
    assert.deepEqual([world.vms.size, world.peak], [1, 0]);
  });

  it('that was hibernated before it was Ready is destroyed and made again, for it would wake up with an old seed', async () => {
    const world = worldWith({ power: 'hibernated' });
    await tellStory(world, async ({ until }) => {
      await until(() => world.status?.ip === '192.0.2.10', 'the address of another one');
    });
    assert.deepEqual([...world.vms.keys()], [100_000]);
    assert.notEqual(world.status?.phase, 'Failed');
  });

  it('that was hibernated is removed by a deletion', async () => {
    const world = worldWith({ power: 'hibernated' });
    world.deleting = true;
    await tellStory(world, async ({ handle }) => {
      assert.equal((await handle.result()).outcome, 'Deleted');
    });
    assert.equal(world.vms.size, 0);
  });

  it('is found by its mark and removed though the status names an impossible VMID (cases.md 17 d)', async () => {
    const world = worldWith({ power: 'running' });
    world.deleting = true;
    world.recorded = {
      ...world.recorded,
      vmid: -1,
      node: 'pv1-1',
      vmName: 'proxy-p1-abcdef-11111111-aaaa',
      provider: 'pve',
      specHash: 'aaaa',
    };
    await tellStory(world, async ({ handle }) => {
      assert.equal((await handle.result()).outcome, 'Deleted');
    });
    assert.equal(world.vms.size, 0);
    assert.equal(world.finalizer, false);
  });
});

describe('a VM that was being made beside the one that serves, by a run that was lost', () => {
  useWorkflowServer();

  /** VM 100006 of spec `aaaa` serves, and the status knows VM 100007 of `bbbb`. */
  function replacing(specHash: string): FakeWorld {
    const nameOf = (spec: string): string => `proxy-p1-abcdef-11111111-${spec}`;
    const name = nameOf('bbbb');
    const world = worldWith({ name, specHash: 'bbbb', power: 'running', configured: true });
    const ip = '192.0.2.76';
    const serving = { vmid: 100_006, name: nameOf('aaaa'), specHash: 'aaaa', ip };
    world.vms.set(serving.vmid, { ...serving, power: 'running', configured: true });
    const place = { node: 'pv1-1', provider: 'pve' };
    world.recorded = {
      ...world.recorded,
      ...place,
      vmid: serving.vmid,
      vmName: serving.name,
      specHash: 'aaaa',
      ip,
      healthy: true,
      everReady: true,
      replacement: { ...place, vmid: 100_007, vmName: name, specHash: 'bbbb' },
    };
    world.desired = world.desired && { ...world.desired, specHash, drainSeconds: 0 };
    return world;
  }

  it('is removed when the spec went back', async () => {
    const world = replacing('aaaa');
    await tellStory(world, async ({ until }) => {
      await until(() => world.vms.size === 1, 'one VM');
      assert.deepEqual([...world.vms.keys()], [100_006]);
      await until(() => world.status?.phase === 'Ready', 'Ready');
    });
  });

  it('is removed when a third spec is wanted, for which another one is made', async () => {
    const world = replacing('cccc');
    await tellStory(world, async ({ until }) => {
      await until(() => world.vms.size === 2 && !world.vms.has(100_007), 'the other one');
      await until(() => world.status?.replacement?.specHash === 'cccc', 'shown');
      assert.equal(world.status?.vmid, 100_006);
    });
  });

  it('takes over when it is still wanted', async () => {
    const world = replacing('bbbb');
    await tellStory(world, async ({ until, health }) => {
      await until(() => world.status?.replacement?.ip === '192.0.2.77', 'its address');
      await health(true, '192.0.2.77');
      await until(() => world.vms.size === 1, 'the old one gone');
    });
    assert.deepEqual([...world.vms.keys()], [100_007]);
  });
});

describe('a clone that boots before its seed is attached', () => {
  useWorkflowServer();

  it('is destroyed and made again: a guest without cloud-init never becomes a proxy', async () => {
    const world = new FakeWorld();
    let booted = false;
    world.before('uploadSeed', () => {
      const [vm] = world.vms.values();
      if (booted || vm === undefined) return;
      booted = true;
      // Its node came back from a restart, and the template says onboot.
      vm.power = 'running';
      throw ApplicationFailure.create({
        type: 'Transient',
        message: 'the node was away',
        details: [{ reason: 'Unreachable', scope: 'provider' }],
      });
    });
    const made: boolean[] = [];
    world.before('pollAgent', () => {
      made.push([...world.vms.values()].every(({ configured }) => configured));
    });
    await tellStory(world, async ({ until }) => {
      await until(() => world.status?.ip !== undefined && world.status.ip !== null, 'an address');
    });
    assert.deepEqual([...new Set(made)], [true]);
    assert.deepEqual([world.vms.size, world.peak], [1, 1]);
  });
});
