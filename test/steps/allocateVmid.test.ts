import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { allocateVmid } from '../../activities/allocateVmid.ts';
import { cloneTemplate } from '../../activities/cloneTemplate.ts';
import { destroyVm } from '../../activities/destroyVm.ts';
import { vmNameFor, installationHex } from '../../activities/vm/identity.ts';
import type { Reason } from '../../workflows/contract/errors.ts';
import type { AllocateVmidInput } from '../../workflows/contract/steps.ts';
import { eventually } from '../support/eventually.ts';
import { aTemplate, stepFixture } from '../support/stepFixture.ts';
import {
  expectReason,
  hurry,
  longClones,
  withSteps,
  type PlacedVm,
  type StepRig,
} from '../support/stepHarness.ts';

function looking(
  { ref, plan }: StepRig,
  fields: Partial<AllocateVmidInput> = {},
): AllocateVmidInput {
  return {
    ref,
    plan,
    recordedVmids: [],
    avoidVmids: [],
    ownFreedVmids: [],
    recordedDiskKeys: {},
    ...fields,
  };
}

async function startClone(rig: StepRig): Promise<string> {
  const { ref, plan, vmid } = rig;
  const { upid } = await rig.run(cloneTemplate, { ref, plan, vmid, templateNode: 'pve1' });
  await eventually(() => rig.simulator.cluster.vms.has(vmid));
  assert.ok(upid);
  return upid;
}

describe('allocateVmid', () => {
  it('probes past a VM of somebody else, whatever its lock', () =>
    withSteps(async (rig) => {
      rig.place({ config: { name: 'web-1', description: null, lock: 'backup' } });
      const found = await rig.run(allocateVmid, looking(rig));
      assert.deepEqual([found.kind, found.vmid], ['vacant', rig.vmid + 1]);
    }));

  it('probes past a container', () =>
    withSteps(async (rig) => {
      rig.place({ type: 'lxc', config: { hostname: 'ct7', name: null, scsi0: null } });
      const found = await rig.run(allocateVmid, looking(rig));
      assert.deepEqual([found.kind, found.vmid], ['vacant', rig.vmid + 1]);
    }));

  it('adopts its VM although the listing has no name for it yet', () =>
    withSteps(async (rig) => {
      rig.place();
      rig.simulator.cluster.stats.delete(rig.vmid);
      const found = await rig.run(allocateVmid, looking(rig));
      assert.deepEqual(found, {
        kind: 'ours',
        vmid: rig.vmid,
        node: 'pve1',
        power: 'stopped',
        seedAttached: false,
      });
    }));

  it("adopts a recorded VM although its row still shows the predecessor's name", () =>
    withSteps(async (rig) => {
      const vm = rig.place({ config: { name: 'web-1' } });
      vm.config.set('name', rig.plan.vmName);
      const found = await rig.run(allocateVmid, looking(rig, { recordedVmids: [rig.vmid] }));
      assert.deepEqual([found.kind, found.vmid], ['ours', rig.vmid]);
    }));

  it('finds its VM on another node than planned', () =>
    withSteps(async (rig) => {
      rig.place({ node: 'pve2' });
      const found = await rig.run(allocateVmid, looking(rig));
      assert.deepEqual([found.kind, 'node' in found && found.node], ['ours', 'pve2']);
    }));

  it('calls a stopped VM incomplete that lacks a disk of its template', () =>
    withSteps(async (rig) => {
      rig.place();
      const recordedDiskKeys = { [String(rig.vmid)]: ['efidisk0', 'scsi0'] };
      const found = await rig.run(allocateVmid, looking(rig, { recordedDiskKeys }));
      assert.equal(found.kind, 'incomplete');
    }));

  it('takes a VM with our seed for complete, although its template has another disk by now', () =>
    withSteps(async (rig) => {
      const ide2 = `${rig.plan.isoStorage}:iso/${rig.plan.seedFile},media=cdrom`;
      rig.place({ vmid: 300, config: { ide2 } });
      const template = rig.simulator.cluster.vms.get(rig.plan.templateVmid);
      template?.config.set('scsi1', 'local:9000/base-9000-disk-9.qcow2,size=1G');
      const recorded = {
        recordedVmids: [rig.vmid],
        recordedDiskKeys: { [String(rig.vmid)]: ['scsi0'] },
      };
      const found = await rig.run(allocateVmid, looking(rig, recorded));
      assert.deepEqual([found.kind, 'vmid' in found && found.vmid], ['ours', 300]);
    }));

  it('follows the clone of a recorded VMID', () =>
    withSteps(async (rig) => {
      const upid = await startClone(rig);
      const found = await rig.run(allocateVmid, looking(rig, { recordedVmids: [rig.vmid] }));
      assert.deepEqual(found, { kind: 'cloning', vmid: rig.vmid, node: 'pve1', upid });
    }, longClones));

  it('waits for a clone to its first VMID that it does not remember, and makes no second one', () =>
    withSteps(async (rig) => {
      const upid = await startClone(rig);
      const error = expectReason(await rig.refusal(allocateVmid, looking(rig)), 'WaitingForLock');
      assert.match(error.message, /locked \(clone\)/);
      assert.equal(error.facts.lock, 'clone');
      hurry(rig);
      await rig.finish(upid);
      const found = await rig.run(allocateVmid, looking(rig));
      assert.deepEqual([found.kind, found.vmid], ['ours', rig.vmid]);
    }, longClones));

  it('sends no second clone while one of its token, which may be its own, has not told its VMID', () =>
    withSteps(async (rig) => {
      const { ref, plan, vmid, simulator } = rig;
      const action = { kind: 'task', delaySeconds: 2_000 } as const;
      simulator.faults.push({ method: 'POST', path: /\/clone$/, action });
      const { upid } = await rig.run(cloneTemplate, { ref, plan, vmid, templateNode: 'pve1' });
      const sentOne = looking(rig, { recordedVmids: [vmid] });
      const error = expectReason(await rig.refusal(allocateVmid, sentOne), 'CloneOutcomeUnknown');
      assert.ok(upid !== null && error.message.includes(upid), error.message);
      // Whoever never sent one is not held up by the clone of another Proxy.
      assert.equal((await rig.run(allocateVmid, looking(rig))).kind, 'vacant');
      hurry(rig);
      await rig.finish(upid);
      assert.equal((await rig.run(allocateVmid, sentOne)).kind, 'ours');
    }));

  it('gives up a recorded VMID whose clone was killed, naming the line that removes it', () =>
    withSteps(async (rig) => {
      rig.simulator.killTask(await startClone(rig));
      const found = await rig.run(allocateVmid, looking(rig, { recordedVmids: [rig.vmid] }));
      assert.deepEqual(found, {
        kind: 'stuck',
        vmid: rig.vmid,
        node: 'pve1',
        lock: 'clone',
        remedy: `on pve1: qm unlock ${rig.vmid} && qm destroy ${rig.vmid} --purge`,
      });
      const next = await rig.run(allocateVmid, looking(rig, { avoidVmids: [rig.vmid] }));
      assert.deepEqual([next.kind, next.vmid], ['vacant', rig.vmid + 1]);
    }, longClones));

  it("does not wait for another's dead clone", () =>
    withSteps(async (rig) => {
      rig.simulator.killTask(await startClone(rig));
      const found = await rig.run(allocateVmid, looking(rig));
      assert.deepEqual([found.kind, found.vmid], ['vacant', rig.vmid + 1]);
    }, longClones));

  it('does not hand out a VMID that was freed a moment ago, except to who freed it', () =>
    withSteps(async (rig) => {
      const { ref, plan, vmid } = rig;
      rig.place();
      const destroying = {
        ref,
        vm: rig.vmRef(),
        purpose: 'incomplete',
        specHash: plan.specHash,
        protectionInherited: false,
        ownClone: null,
      } as const;
      const destroyed = await rig.run(destroyVm, destroying);
      await rig.finish(destroyed.kind === 'task' ? destroyed.upid : null);
      const other = await rig.run(allocateVmid, looking(rig));
      assert.deepEqual([other.kind, other.vmid], ['vacant', vmid + 1]);
      const own = await rig.run(allocateVmid, looking(rig, { ownFreedVmids: [vmid] }));
      assert.deepEqual([own.kind, own.vmid], ['vacant', vmid]);
    }));

  it('names both UIDs of a VM with its name that it did not make', () =>
    withSteps(async (rig) => {
      const uid = '22222222-2222-4222-8222-222222222222';
      rig.place({ vmid: 300, uid });
      const error = expectReason(
        await rig.refusal(allocateVmid, looking(rig)),
        'OwnershipConflict',
      );
      assert.equal(error.errorClass, 'Permanent');
      for (const text of ['300', uid, rig.ref.uid]) assert.ok(error.message.includes(text), text);
    }));

  const conflicts: [title: string, vms: PlacedVm[], reason: Reason][] = [
    ['a VM with its name and no mark', [{ config: { description: null } }], 'OwnershipConflict'],
    ['two VMs with its name', [{}, { vmid: 300 }], 'DuplicateVm'],
    ['a backup of its stopped VM', [{ config: { lock: 'backup' } }], 'WaitingForLock'],
  ];
  for (const [title, vms, reason] of conflicts) {
    it(`refuses ${title}: ${reason}`, () =>
      withSteps(async (rig) => {
        for (const vm of vms) rig.place(vm);
        expectReason(await rig.refusal(allocateVmid, looking(rig)), reason);
      }));
  }

  it('does not touch a VM that another installation made for this UID', () =>
    withSteps(async (rig) => {
      const installation = 'another-cluster';
      const name = vmNameFor({
        proxyName: rig.ref.name,
        uid: rig.ref.uid,
        installationHex: installationHex(installation),
        specHash: rig.plan.specHash,
      });
      rig.place({ vmid: 300, installation, config: { name } });
      const error = await rig.refusal(allocateVmid, looking(rig));
      expectReason(error, 'InstallationMismatch');
      assert.match(error.message, /another-cluster/);
    }));

  it('concludes nothing from a listing without the right to see VMs', () =>
    withSteps(
      async (rig) => {
        const error = await rig.refusal(allocateVmid, looking(rig));
        expectReason(error, 'ListingIncomplete');
        assert.match(error.message, /VM\.Audit/);
      },
      { fixture: stepFixture({ acls: [] }) },
    ));

  it('waits for the node of a VM that may be its own', () =>
    withSteps(async (rig) => {
      rig.place({ node: 'pve2' });
      rig.simulator.setNode('pve2', { state: 'dead' });
      const error = expectReason(await rig.refusal(allocateVmid, looking(rig)), 'Unreachable');
      assert.match(error.message, /pve2/);
    }));

  it('does not clone while the node of the VM is offline', () =>
    withSteps(async (rig) => {
      rig.simulator.setNode('pve2', { state: 'dead' });
      const plan = { ...rig.plan, node: 'pve2', templateVmid: 9002 };
      await eventually(async () => {
        const error = await rig.refusal(allocateVmid, { ...looking(rig), plan });
        return error.facts.reason === 'Unreachable' && error.message.includes('node pve2');
      });
    }));

  it('says that all candidates are taken', () =>
    withSteps(async (rig) => {
      for (const vmid of [200, 201]) rig.place({ vmid, config: { name: 'web' } });
      const plan = { ...rig.plan, vmidMin: 200, vmidMax: 201 };
      const error = await rig.refusal(allocateVmid, { ...looking(rig), plan });
      expectReason(error, 'VmidsExhausted');
      assert.match(error.message, /all 2 candidate VMIDs .* 200 to 201/);
    }));

  it('finds a template on its node and tells what the clone will inherit', () =>
    withSteps(
      async (rig) => {
        const found = await rig.run(allocateVmid, looking(rig));
        assert.deepEqual(found, {
          kind: 'vacant',
          vmid: rig.vmid,
          templateNode: 'pve2',
          diskKeys: ['efidisk0', 'scsi0'],
          protectionInherited: true,
        });
        assert.ok(rig.simulator.requests.every(({ method }) => method === 'GET'));
      },
      {
        fixture: stepFixture({
          vms: [
            {
              vmid: 9001,
              node: 'pve2',
              config: aTemplate(9001, {
                protection: 1,
                efidisk0: 'local:9001/base-9001-disk-1.qcow2,size=528K',
              }),
            },
          ],
        }),
      },
    ));
});
