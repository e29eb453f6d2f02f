/** A backup of a VM was restored on another node, and the node of its original has been silent for five minutes. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { listManagedVms } from '../../activities/listManagedVms.ts';
import { vmidCandidates } from '../../activities/vm/identity.ts';
import { expectReason, withSteps, type StepRig } from '../support/stepHarness.ts';

const backupVmid = 300;

/** Its VMID is not the first candidate, which is free again after a replacement; its row tells no name any more. */
function placeSilentOriginal(rig: StepRig): number {
  const { simulator, ref, plan } = rig;
  const [, second = 0] = vmidCandidates(ref.uid, plan.vmidMin, plan.vmidMax);
  rig.place({ vmid: second, node: 'pve2' });
  rig.place({ vmid: backupVmid });
  simulator.setNode('pve2', { state: 'dead' });
  simulator.cluster.stats.delete(second);
  return second;
}

describe('listManagedVms for the deletion of a Proxy with a restored backup', () => {
  it('is not complete while the VM that was recorded cannot be read', () =>
    withSteps(async (rig) => {
      const original = placeSilentOriginal(rig);
      const listing = { ref: rig.ref, provider: 'pve', recorded: [original] };
      const error = expectReason(await rig.refusal(listManagedVms, listing), 'Unreachable');
      assert.match(error.message, /pve2/);
    }));

  it('does not wait for a silent VM that nobody recorded and that cannot be its own', () =>
    withSteps(async (rig) => {
      placeSilentOriginal(rig);
      const { vms } = await rig.run(listManagedVms, {
        ref: rig.ref,
        provider: 'pve',
        recorded: [],
      });
      assert.deepEqual(
        vms.map(({ vmid }) => vmid),
        [backupVmid],
      );
    }));
});
