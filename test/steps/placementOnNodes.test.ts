import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { allocateVmid } from '../../activities/allocateVmid.ts';
import { resizeDisk } from '../../activities/resizeDisk.ts';
import { resolvePlacement } from '../../activities/resolvePlacement.ts';
import type { Plan } from '../../workflows/contract/steps.ts';
import { looking, runLine, runRemoval } from '../support/lifeOfSteps.ts';
import { aTemplate, stepFixture } from '../support/stepFixture.ts';
import { expectReason, seedOf, withSteps, type StepRig } from '../support/stepHarness.ts';

/** The plan of the rig's Proxy for a zone, by the config in force. */
async function planFor(rig: StepRig, zone: string): Promise<Plan> {
  const { ref, plan } = rig;
  const { specHash, deletionPolicy } = plan;
  const placement = { region: null, zone, machineType: 'small', image: 'debian-13' };
  const input = { ref, provider: 'pve', placement, specHash, deletionPolicy };
  return rig.run(resolvePlacement, input);
}

function nodeOf(rig: StepRig): string | undefined {
  return rig.simulator.cluster.vms.get(rig.vmid)?.node;
}

describe('a VM for another node than that of the template', () => {
  it('is cloned with a target where the disks are on shared storage, and its seed is where it is', () =>
    withSteps(async (rig) => {
      rig.configure({ templates: { 'debian-13': { vmid: 9002 } } });
      const plan = await planFor(rig, 'pve2');
      assert.ok(await runLine(rig, plan));
      assert.equal(rig.sent('POST', /\/clone$/)[0]?.path, '/nodes/pve1/qemu/9002/clone');
      assert.equal(rig.sent('POST', /\/clone$/)[0]?.params['target'], 'pve2');
      assert.equal(nodeOf(rig), 'pve2');
      assert.deepEqual(
        rig.simulator.isos().map(({ node, name }) => [node, name]),
        [['pve2', seedOf(plan)]],
      );
      await runRemoval(rig, plan, 'pve2');
      assert.deepEqual([nodeOf(rig), rig.simulator.isos()], [undefined, []]);
    }));

  it('is refused by Proxmox where the disks are local, and the message says what helps', () =>
    withSteps(async (rig) => {
      const plan = await planFor(rig, 'pve2');
      const error = expectReason(await failureOf(rig, plan), 'TemplateUnusable');
      assert.deepEqual([error.errorClass, error.facts.scope], ['Permanent', 'provider']);
      assert.match(error.message, /can't clone VM to node 'pve2' \(VM uses local storage\)/);
      assert.match(error.facts.remedy ?? '', /shared storage|vmids/);
      assert.equal(nodeOf(rig), undefined);
    }));

  it("is cloned from that node's own copy of the template, in place", () =>
    withSteps(async (rig) => {
      rig.configure({ templates: { 'debian-13': { vmid: 9001, vmids: { pve2: 9003 } } } });
      const plan = await planFor(rig, 'pve2');
      assert.ok(await runLine(rig, plan));
      const [clone, ...others] = rig.sent('POST', /\/clone$/);
      assert.deepEqual([clone?.path, others], ['/nodes/pve2/qemu/9003/clone', []]);
      assert.equal(clone?.params['target'], undefined);
      assert.equal(nodeOf(rig), 'pve2');
    }));
});

async function failureOf(rig: StepRig, plan: Plan): ReturnType<StepRig['refusal']> {
  return rig.refusal(async () => runLine(rig, plan), undefined);
}

describe('the storage of the disks', () => {
  it('is the one in the config, else that of the template', () =>
    withSteps(async (rig) => {
      rig.configure({ storage: 'shared-images' });
      await runLine(rig, await planFor(rig, 'pve1'), 'clone');
      const disk = (): string => rig.simulator.cluster.vms.get(rig.vmid)?.config.get('scsi0') ?? '';
      assert.match(disk(), /^shared-images:/);
      rig.simulator.removeVm(rig.vmid);
      rig.configure({});
      await runLine(rig, await planFor(rig, 'pve1'), 'clone');
      assert.match(disk(), /^local:/);
    }));

  // LVM allocates whole extents of 4 MiB, so a disk may be larger than anybody asked for.
  it('may round up: the disk is grown once, and never again', () =>
    withSteps(
      async (rig) => {
        const plan = { ...(await planFor(rig, 'pve1')), diskGiB: 1 };
        await runLine(rig, plan, 'resize');
        const input = { ref: rig.ref, plan, vm: rig.vmRef() };
        assert.deepEqual(await rig.run(resizeDisk, input), { upid: null });
        assert.equal(rig.sent('PUT', /\/resize$/).length, 1);
      },
      { fixture: onLvm('65M') },
    ));

  it('may round up beyond what is wanted: nothing is asked for, and nothing shrunk', () =>
    withSteps(
      async (rig) => {
        const plan = { ...(await planFor(rig, 'pve1')), diskGiB: 1 };
        await runLine(rig, plan, 'resize');
        assert.equal(rig.sent('PUT', /\/resize$/).length, 0);
      },
      { fixture: onLvm('1025M') },
    ));
});

/** The template's disk on LVM, with this size. */
function onLvm(size: string): ReturnType<typeof stepFixture> {
  const config = aTemplate(9001, { scsi0: `local-lvm:base-9001-disk-0,size=${size}` });
  const fixture = stepFixture({ vms: [{ vmid: 9001, node: 'pve1', config }] });
  const lvm = { id: 'local-lvm', type: 'lvmthin' as const, content: ['images' as const] };
  return { ...fixture, storages: [...fixture.storages, lvm] };
}

describe('VMIDs', () => {
  it('that are all taken are waited for, and one that is freed is used', () =>
    withSteps(async (rig) => {
      const plan = { ...rig.plan, vmidMin: 200, vmidMax: 202 };
      for (const vmid of [200, 201, 202]) rig.place({ vmid, config: { name: 'web' } });
      const error = await rig.refusal(allocateVmid, looking(rig, { plan }));
      expectReason(error, 'VmidsExhausted');
      assert.equal(error.errorClass, 'Transient');
      rig.simulator.removeVm(201);
      const found = await rig.run(allocateVmid, looking(rig, { plan }));
      assert.deepEqual(found.kind === 'vacant' && found.vmid, 201);
    }));

  it('wrap at the end of the range', () =>
    withSteps(async (rig) => {
      // The hash of the UID lands on the last number of this range.
      const plan = { ...rig.plan, vmidMin: rig.vmid - 5, vmidMax: rig.vmid };
      const first = await rig.run(allocateVmid, looking(rig, { plan }));
      assert.equal(first.kind, 'vacant');
      const at = first.kind === 'vacant' ? first.vmid : 0;
      for (let vmid = at; vmid <= plan.vmidMax; vmid += 1) {
        rig.place({ vmid, config: { name: 'web' } });
      }
      const next = await rig.run(allocateVmid, looking(rig, { plan }));
      assert.deepEqual(next.kind === 'vacant' && next.vmid, plan.vmidMin);
    }));

  it('outside of the range are left to others, whatever stands there', () =>
    withSteps(async (rig) => {
      rig.place({ vmid: 99_999, config: { name: 'web' } });
      rig.place({ vmid: 100_100, config: { name: 'web' } });
      const found = await rig.run(allocateVmid, looking(rig));
      assert.deepEqual(found.kind === 'vacant' && found.vmid, rig.vmid);
      const reads = rig.sent('GET', /\/qemu\/(99999|100100)\//);
      assert.deepEqual(reads, [], 'and nobody asks about them');
    }));
});
