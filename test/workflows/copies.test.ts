/** Somebody restored a backup of a Proxy's VM under another VMID: a VM with the same name and mark stands beside it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApplicationFailure } from '@temporalio/common';
import type { FailureFacts } from '../../workflows/contract/errors.ts';
import type { Leftover } from '../../workflows/contract/proxy.ts';
import { FakeWorld } from '../support/fakeWorld.ts';
import { conditionOf, eventReasons, onReady } from '../support/observedParts.ts';
import { ready } from '../support/storyParts.ts';
import { tellStory, useWorkflowServer } from '../support/workflowHarness.ts';

describe('a copy of the VM', () => {
  useWorkflowServer();

  it('stays when its Proxy is deleted, and an Event says so', async () => {
    const copyVmid = 555;
    const world = await onReady(async ({ world: { vms }, deleted, handle }, vm) => {
      vms.set(copyVmid, { ...vm, vmid: copyVmid, power: 'stopped' });
      await deleted();
      assert.equal((await handle.result()).outcome, 'Deleted');
    });
    assert.deepEqual([...world.vms.keys()], [copyVmid]);
    const told = world.events.find(({ reason }) => reason === 'DuplicateVm');
    assert.match(told?.message ?? '', /VM 555 on pv1-1 stays.*; rename it to keep it/);
  });

  it('stays while the node of the VM is silent, so that the copy alone shows its name', async () => {
    const copyVmid = 555;
    const world = await onReady(async (story, vm) => {
      const { world: told, until, skip, deleted, handle } = story;
      told.vms.set(copyVmid, { ...vm, vmid: copyVmid, node: 'pv1-2', power: 'stopped' });
      told.deadNodes.add('pv1-1');
      await deleted();
      await until(() => conditionOf(told, 'Reconciling') === 'True Unreachable', 'the wait');
      await skip(40_000);
      assert.deepEqual([...told.vms.keys()], [vm.vmid, copyVmid]);
      told.deadNodes.clear();
      assert.equal((await handle.result()).outcome, 'Deleted');
    });
    assert.deepEqual([...world.vms.keys()], [copyVmid]);
  });

  const untold: [string, Leftover[]][] = [
    ['and its original both stay when no record tells them apart', []],
    ['and its original both stay when one of them was given up once', [givenUp(555)]],
  ];
  for (const [what, leftovers] of untold)
    it(`${what}, until a person has removed one`, async () => {
      const world = new FakeWorld();
      world.finalizer = true;
      world.deleting = true;
      world.recorded = { ...world.recorded, leftovers };
      const name = 'proxy-p1-abcdef-11111111-eeee';
      const fields = { name, specHash: 'eeee', configured: true, ip: '192.0.2.13' };
      for (const vmid of [100_003, 555]) world.vms.set(vmid, { vmid, power: 'stopped', ...fields });
      await tellStory(world, async ({ until, skip, handle }) => {
        await until(() => conditionOf(world, 'Stalled') === 'True DuplicateVm', 'DuplicateVm');
        assert.match(world.status?.message ?? '', /100003 on pv1-1, 555 on pv1-1/);
        await skip(20_000);
        assert.deepEqual([...world.vms.keys()], [100_003, 555]);
        world.vms.delete(555);
        assert.equal((await handle.result()).outcome, 'Deleted');
      });
      assert.equal(world.vms.size, 0);
      assert.ok(eventReasons(world).includes('DuplicateVm'));
    });
});

describe('a leftover that its Proxy gave up, and that a person unlocked,', () => {
  useWorkflowServer();

  const names = ['proxy-p1-abcdef-11111111-aaaa', 'proxy-p1-abcdef-11111111-cccc'];
  for (const name of names) {
    it(`is neither told to be a copy nor removed by the deletion, which names it: ${name}`, async () => {
      const world = new FakeWorld();
      world.finds.push({ kind: 'stuck', vmid: 555, node: 'pv1-1', lock: 'clone', remedy: 'qm' });
      await tellStory(world, async (story) => {
        await ready(story);
        world.vms.set(555, { ...world.at(100_000), vmid: 555, name, power: 'stopped' });
        await story.deleted();
        const { outcome, left } = await story.handle.result();
        assert.deepEqual([outcome, left.map(({ vmid }) => vmid)], ['Deleted', [555]]);
      });
      assert.deepEqual([...world.vms.keys()], [555]);
      assert.ok(!eventReasons(world).includes('DuplicateVm'));
    });
  }
});

describe('a VM that somebody renamed', () => {
  useWorkflowServer();

  it('goes with its Proxy after all, when it has its name again', async () => {
    const { vms, seeds } = await onReady(async (story, vm) => {
      const { world, until, skip, deleted, handle } = story;
      const { name } = vm;
      vm.name = 'web-1';
      world.before('deleteSeed', () => {
        if (world.vms.has(vm.vmid)) throw seedIsNeeded(vm.vmid);
      });
      await deleted();
      await skip(35_000);
      await until(() => conditionOf(world, 'Reconciling') === 'True DeletionBlocked', 'blocked');
      assert.deepEqual([world.vms.size, vm.power], [1, 'running'], 'it is left alone');
      vm.name = name;
      await skip(35_000);
      assert.equal((await handle.result()).outcome, 'Deleted');
    });
    assert.deepEqual([vms.size, seeds.size], [0, 0]);
  });
});

function givenUp(vmid: number): Leftover {
  return { provider: 'pve', vmid, node: 'pv1-1', upid: '', reason: 'locked for good' };
}

/** As facts of the real step: the VM still has the seed in its drive. */
function seedIsNeeded(vmid: number): ApplicationFailure {
  const facts: FailureFacts = { reason: 'DeletionBlocked', scope: 'proxy', vmid };
  return ApplicationFailure.create({
    type: 'Transient',
    message: `the seed is kept: VM ${vmid} may need it`,
    nonRetryable: true,
    details: [facts],
  });
}
