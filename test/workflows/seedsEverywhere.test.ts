import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Steps } from '../../workflows/contract/stepTable.ts';
import { FakeWorld } from '../support/fakeWorld.ts';
import { tellStory, useWorkflowServer } from '../support/workflowHarness.ts';

/** A world in which every node may hold a seed of its own, and the VM may move. */
class ScatteredWorld extends FakeWorld {
  /** Node the VM is on, as far as the steps that tell it are concerned. */
  vmNode = 'pv1-1';
  readonly holders = new Set<string>();
  /** Nodes whose seed cannot be deleted. */
  readonly stubborn = new Set<string>();
  readonly asked: string[] = [];

  override steps(): Steps {
    const steps = super.steps();
    return {
      ...steps,
      uploadSeed: async (input) => {
        const result = await steps.uploadSeed(input);
        this.holders.add(this.vmNode);
        return { ...result, node: this.vmNode };
      },
      awaitRunning: async (input) => {
        await steps.awaitRunning(input);
        return { node: this.vmNode };
      },
      pollAgent: async (input) => ({ ...(await steps.pollAgent(input)), node: this.vmNode }),
      deleteSeed: async ({ node }) => {
        this.asked.push(node);
        if (this.stubborn.has(node)) throw new Error(`the storage of ${node} is away`);
        if (this.holders.delete(node)) return { kind: 'task', upid: `UPID:${node}:imgdel` };
        return { kind: 'gone', alsoOn: [...this.holders] };
      },
    };
  }
}

describe('the seeds of a VM', () => {
  useWorkflowServer();

  it('are deleted where they were uploaded, though the VM is on another node now (cases.md 11 c)', async () => {
    const world = new ScatteredWorld();
    world.before('startVm', () => {
      world.vmNode = 'pv1-2';
    });
    await tellStory(world, async ({ until, deleted, handle }) => {
      await until(() => world.status?.node === 'pv1-2', 'the VM on its new node');
      assert.deepEqual([...world.holders], ['pv1-1']);
      await deleted();
      assert.equal((await handle.result()).outcome, 'Deleted');
    });
    assert.deepEqual([...world.holders], []);
    assert.ok(!world.asked.includes('pv1-2'), 'it never had one there');
  });

  it('are deleted wherever else a node lists one', async () => {
    const world = new ScatteredWorld();
    await tellStory(world, async ({ until, deleted, handle }) => {
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
      world.holders.add('pv1-2').add('pv1-3');
      await deleted();
      await handle.result();
    });
    assert.deepEqual([...world.holders], []);
  });

  it('do not hold up a deletion where nobody knew of them', async () => {
    const world = new ScatteredWorld();
    world.stubborn.add('pv1-2');
    await tellStory(world, async ({ until, deleted, handle }) => {
      await until(() => world.status?.ip === '192.0.2.10', 'an address');
      world.holders.add('pv1-2').add('pv1-3');
      await deleted();
      assert.equal((await handle.result()).outcome, 'Deleted');
    });
    assert.deepEqual([...world.holders], ['pv1-2']);
    assert.equal(world.finalizer, false);
  });
});
