/** One template, a copy per node on local disks (cases.md 13). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { resolvePlacement } from '../../activities/resolvePlacement.ts';
import type { Plan } from '../../workflows/contract/steps.ts';
import { runLine } from '../support/lifeOfSteps.ts';
import { aTemplate, stepFixture } from '../support/stepFixture.ts';
import { expectReason, hashOf, withSteps, type StepRig } from '../support/stepHarness.ts';

/** The plan for a zone, with these copies of `debian-13`. */
async function planFor(rig: StepRig, zone: string, vmids: Record<string, number>): Promise<Plan> {
  rig.configure({ templates: { 'debian-13': { vmids } } });
  const placement = { region: null, zone, machineType: 'small', image: 'debian-13' };
  const specHash = hashOf('#cloud-config\n');
  const wanted = { ref: rig.ref, provider: 'pve', placement, specHash } as const;
  return rig.run(resolvePlacement, { ...wanted, deletionPolicy: 'Delete' });
}

async function refusal(rig: StepRig, plan: Plan): ReturnType<StepRig['refusal']> {
  return rig.refusal(() => runLine(rig, plan), undefined);
}

function clones(rig: StepRig): [path: string, target: unknown][] {
  return rig.sent('POST', /\/clone$/).map(({ path, params }) => [path, params['target']]);
}

describe('copies of a template', () => {
  const own: [zone: string, path: string][] = [
    ['pve1', '/nodes/pve1/qemu/9001/clone'],
    ['pve2', '/nodes/pve2/qemu/9003/clone'],
  ];
  for (const [zone, path] of own) {
    it(`are cloned on their own node, without a target: ${zone}`, () =>
      withSteps(async (rig) => {
        assert.ok(await runLine(rig, await planFor(rig, zone, { pve1: 9001, pve2: 9003 })));
        assert.deepEqual(clones(rig), [[path, undefined]]);
        assert.equal(rig.simulator.cluster.vms.get(rig.vmid)?.node, zone);
      }));
  }

  it('that one node lacks hold up nobody on the other', () =>
    withSteps(async (rig) => {
      rig.simulator.removeVm(9003);
      const vmids = { pve1: 9001, pve2: 9003 };
      const error = expectReason(
        await refusal(rig, await planFor(rig, 'pve2', vmids)),
        'TemplateUnusable',
      );
      assert.match(error.message, /template VM 9003 does not exist/);
      assert.deepEqual([error.errorClass, error.facts.scope], ['Permanent', 'provider']);
      assert.deepEqual(clones(rig), []);
      assert.ok(await runLine(rig, await planFor(rig, 'pve1', vmids)));
    }));

  it('that are no templates are refused before any clone, each by its own VMID', () =>
    withSteps(
      async (rig) => {
        const vmids = { pve1: 9001, pve2: 9010 };
        const error = await refusal(rig, await planFor(rig, 'pve2', vmids));
        expectReason(error, 'TemplateUnusable');
        assert.match(error.message, /template VM 9010 is not a template/);
        assert.deepEqual(clones(rig), []);
      },
      {
        fixture: stepFixture({
          vms: [
            { vmid: 9001, node: 'pve1', config: aTemplate(9001) },
            { vmid: 9010, node: 'pve2', config: aTemplate(9010, { template: 0 }) },
          ],
        }),
      },
    ));

  it('that stand on another node than the config says are refused by Proxmox, with what helps, and no VM is made', () =>
    withSteps(async (rig) => {
      const error = await refusal(rig, await planFor(rig, 'pve2', { pve1: 9001, pve2: 9001 }));
      expectReason(error, 'TemplateUnusable');
      assert.deepEqual([error.errorClass, error.facts.scope], ['Permanent', 'provider']);
      assert.match(error.message, /can't clone VM to node 'pve2' \(VM uses local storage\)/);
      assert.match(error.facts.remedy ?? '', /give the node its own copy/);
      assert.equal(rig.simulator.cluster.vms.has(rig.vmid), false);
    }));

  it('that stand elsewhere are cloned with a target when their disks are shared', () =>
    withSteps(async (rig) => {
      assert.ok(await runLine(rig, await planFor(rig, 'pve2', { pve1: 9002, pve2: 9002 })));
      assert.deepEqual(clones(rig), [['/nodes/pve1/qemu/9002/clone', 'pve2']]);
    }));

  it('cannot be cloned elsewhere to a local storage, and the message says so', () =>
    withSteps(async (rig) => {
      const plan = await planFor(rig, 'pve2', { pve1: 9002, pve2: 9002 });
      const error = await refusal(rig, { ...plan, storage: 'local' });
      expectReason(error, 'TemplateUnusable');
      assert.match(error.message, /can't clone to non-shared storage 'local'/);
      assert.match(error.facts.remedy ?? '', /clone to a shared storage/);
    }));

  it('are followed when they were moved to another node with their disks', () =>
    withSteps(async (rig) => {
      const moved = rig.simulator.cluster.vms.get(9002);
      assert.ok(moved);
      moved.node = 'pve2';
      rig.simulator.refreshStats();
      assert.ok(await runLine(rig, await planFor(rig, 'pve2', { pve1: 9001, pve2: 9002 })));
      assert.deepEqual(clones(rig), [['/nodes/pve2/qemu/9002/clone', undefined]]);
    }));
});
