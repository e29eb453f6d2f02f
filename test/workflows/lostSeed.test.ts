/** A seed that is gone when its VM is to be started: a VM does not start while its drive names a file that is not there. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { observed, onReady } from '../support/observedParts.ts';
import { useWorkflowServer } from '../support/workflowHarness.ts';

describe('a stopped VM whose seed is lost', () => {
  useWorkflowServer();

  it('restores a lost seed before the start', async () => {
    await onReady(async (story, vm) => {
      const { world, until } = story;
      world.seeds.clear();
      vm.power = 'stopped';
      await observed(story);
      await until(() => vm.power === 'running', 'it runs');
      assert.equal(world.seeds.size, 1);
      assert.equal(vm.configured, true);
    });
  });

  it('empties the drive of a lost seed whose cloud-init is another one by now', async () => {
    await onReady(async (story, vm) => {
      const { world, until } = story;
      world.seeds.clear();
      vm.power = 'stopped';
      const facts = { reason: 'CloudInitChanged', scope: 'proxy', goBack: true } as const;
      world.fail('uploadSeed', { type: 'Transient', message: 'changed', facts });
      await observed(story);
      await until(() => vm.power === 'running', 'it runs');
      assert.deepEqual([world.seeds.size, vm.configured], [0, false]);
    });
  });
});
