/** VMIDs that were given up, as `listManagedVms` and `allocateVmid` look at them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { allocateVmid } from '../../activities/allocateVmid.ts';
import type { Leftover } from '../../workflows/contract/proxy.ts';
import { aRef } from '../support/aPlan.ts';
import { aProxy } from '../support/memoryRecords.ts';
import { census, lostUid } from '../support/orphanRig.ts';
import { stepFixture } from '../support/stepFixture.ts';
import { expectReason, withSteps, type StepRig } from '../support/stepHarness.ts';

function withLeftovers(rig: StepRig, vmids: number[], uid = rig.ref.uid, name = 'p1'): void {
  const leftovers: Leftover[] = vmids.map((vmid) => ({
    provider: 'pve',
    vmid,
    node: 'pve1',
    upid: '',
    reason: 'locked (clone)',
  }));
  const proxy = aProxy({ metadata: { ...aRef({ uid, name }) } });
  rig.records.put({ ...proxy, status: { ...proxy.status, leftovers } });
}

describe('a leftover', () => {
  it('is gone when its VMID is free or somebody else’s', () =>
    withSteps(async (rig) => {
      withLeftovers(rig, [310, 311]);
      rig.place({ vmid: 311, config: { name: 'web-1' } });
      const states = (await census(rig)).leftovers.map(({ vmid, state }) => `${vmid} ${state}`);
      assert.deepEqual(states, ['310 gone', '311 gone']);
    }));

  it('is not taken for gone while it is hidden by an ACL of its own', () =>
    withSteps(
      async (rig) => {
        withLeftovers(rig, [310, 311]);
        rig.place({ vmid: 310, config: { lock: 'clone' } });
        assert.deepEqual((await census(rig)).leftovers, [
          { owner: rig.ref, vmid: 311, state: 'gone' },
        ]);
      },
      {
        fixture: stepFixture({
          acls: [
            {
              path: '/',
              principal: 'proxy-operator@pve',
              role: 'ProxyOperator',
              propagate: true,
            },
            {
              path: '/vms/310',
              principal: 'proxy-operator@pve',
              role: 'NoAccess',
              propagate: true,
            },
          ],
        }),
      },
    ));

  it('can be removed when it is ours and unlocked', () =>
    withSteps(async (rig) => {
      withLeftovers(rig, [310]);
      rig.place({ vmid: 310 });
      assert.deepEqual((await census(rig)).leftovers, [
        { owner: rig.ref, vmid: 310, state: 'free' },
      ]);
    }));

  it('stays one while it is locked, and for ever while it is a bare placeholder', () =>
    withSteps(async (rig) => {
      withLeftovers(rig, [310, 311]);
      rig.place({ vmid: 310, config: { lock: 'clone' } });
      rig.place({ vmid: 311, config: { name: null, description: null, scsi0: null } });
      assert.deepEqual((await census(rig)).leftovers, []);
    }));

  it('is one too many when the provider has three', () =>
    withSteps(async (rig) => {
      const { ref, plan, vmid } = rig;
      rig.place({ config: { lock: 'clone' } });
      const input = {
        ref,
        plan,
        recordedVmids: [vmid],
        avoidVmids: [],
        ownFreedVmids: [],
        recordedDiskKeys: {},
      };
      withLeftovers(rig, [311, 312], lostUid, 'p2');
      assert.equal((await rig.run(allocateVmid, input)).kind, 'stuck');
      withLeftovers(rig, [311, 312, 313], lostUid, 'p2');
      const error = expectReason(await rig.refusal(allocateVmid, input), 'VmLeftover');
      assert.equal(error.errorClass, 'Transient');
      assert.match(error.message, /311 on pve1, 312 on pve1, 313 on pve1/);
      assert.match(error.message, new RegExp(`qm unlock ${vmid}`));
    }));
});
