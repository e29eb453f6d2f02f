import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Providers } from '../../activities/deps.ts';
import { deleteSeed } from '../../activities/deleteSeed.ts';
import { destroyVm } from '../../activities/destroyVm.ts';
import { ProviderError } from '../../activities/providerError.ts';
import { stopVm } from '../../activities/stopVm.ts';
import { powerOn } from '../simulator/power.ts';
import { eventually } from '../support/eventually.ts';
import { runRemoval, seedDeletion } from '../support/lifeOfSteps.ts';
import { deleting, removing, writes } from '../support/removals.ts';
import { addIso } from '../support/simulatedVolumes.ts';
import { expectReason, seedOf, type StepRig } from '../support/stepHarness.ts';

const both = [stopVm, destroyVm];

function expectGone(rig: StepRig): void {
  assert.equal(rig.simulator.cluster.vms.has(rig.vmid), false);
}

describe('a VM that is on the move', () => {
  // cases.md 11 b: under its old node it looks missing, which proves nothing.
  it('between two looks is looked for again, and never taken for gone', () =>
    deleting(async (rig) => {
      const vm = rig.place();
      const { providers } = rig.deps;
      for (const step of both) {
        vm.node = 'pve1';
        rig.deps.providers = moving(providers, () => (vm.node = 'pve2'), 'listing');
        const error = expectReason(await rig.refusal(step, removing(rig)), 'VmVanished');
        assert.deepEqual([error.errorClass, error.facts.goBack], ['Transient', true]);
      }
      assert.deepEqual(writes(rig), []);
      rig.deps.providers = providers;
      await eventually(async () => {
        const result = await rig.run(destroyVm, removing(rig)).catch(() => null);
        return result?.kind === 'gone';
      });
      expectGone(rig);
    }));

  it('between the last look and the request is not harmed, and found again', () =>
    deleting(async (rig) => {
      const vm = rig.place();
      const { providers } = rig.deps;
      for (const step of both) {
        vm.node = 'pve1';
        if (step === stopVm) powerOn(rig.simulator.core, vm);
        rig.deps.providers = moving(providers, () => (vm.node = 'pve2'), 'status');
        // A stop under the wrong node is a task that fails, a destroy is refused (pve/cluster.md 4).
        const ended = await rig.run(step, removing(rig)).then(
          (result) => rig.refusal(async () => rig.finish('upid' in result ? result.upid : null), 0),
          (error: unknown) => error,
        );
        assert.ok(ended instanceof ProviderError && ended.facts.reason === 'VmVanished');
        assert.equal(rig.simulator.cluster.vms.get(rig.vmid), vm);
        rig.simulator.powerOffVm(rig.vmid);
      }
      rig.deps.providers = providers;
      await runRemoval(rig, rig.plan, 'pve2');
      expectGone(rig);
    }));

  it('leaves its seed where it was uploaded, and that is where the seed is deleted (cases.md 11 c)', () =>
    deleting(async (rig) => {
      rig.place({ node: 'pve2', config: { ide2: 'none,media=cdrom' } });
      addIso(rig.simulator, { file: seedOf(rig.plan), node: 'pve1' });
      await runRemoval(rig, rig.plan, 'pve2');
      expectGone(rig);
      assert.equal(rig.simulator.isos().length, 1);
      const result = await rig.run(deleteSeed, seedDeletion(rig, 'pve1'));
      await rig.finish(result.kind === 'task' ? result.upid : null);
      assert.deepEqual(rig.simulator.isos(), []);
    }));
});

/** `Providers` under which the VM moves right after a listing, or its status, was read. */
function moving(providers: Providers, move: () => void, after: 'listing' | 'status'): Providers {
  return {
    ...providers,
    api: (name, call) => {
      const api = providers.api(name, call);
      const moved = <R>(result: R): R => {
        move();
        return result;
      };
      const listVms = (): ReturnType<typeof api.listVms> => api.listVms().then(moved);
      const getVmStatus: typeof api.getVmStatus = (node, vmid) =>
        api.getVmStatus(node, vmid).then(moved);
      return after === 'listing' ? { ...api, listVms } : { ...api, getVmStatus };
    },
  };
}
