import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { allocateVmid } from '../../activities/allocateVmid.ts';
import { cloneTemplate } from '../../activities/cloneTemplate.ts';
import { resolvePlacement } from '../../activities/resolvePlacement.ts';
import { readSeed } from '../simulator/iso.ts';
import { powerOff } from '../simulator/power.ts';
import { eventually } from '../support/eventually.ts';
import { looking, runLine, stages } from '../support/lifeOfSteps.ts';
import { aTemplate, stepFixture } from '../support/stepFixture.ts';
import { expectReason, hurry, longClones, seedOf, withSteps, type StepRig } from '../support/stepHarness.ts'; // prettier-ignore

/** The one VM of the rig's Proxy, whole and running, with its one seed. */
function expectWhole(rig: StepRig, address: string | null): void {
  const { simulator, plan } = rig;
  const named = simulator.vms().filter(({ config }) => config.get('name') === plan.vmName);
  const [vm] = named;
  assert.equal(named.length, 1);
  assert.equal(vm?.running?.address, address);
  assert.equal(vm?.config.get('cores'), '1');
  assert.equal(vm?.config.get('memory'), '512');
  assert.equal(vm?.config.get('agent'), '1');
  assert.equal(vm?.config.get('tags'), 'proxy_operator');
  assert.match(vm?.config.get('ide2') ?? '', new RegExp(`^proxy-seeds:iso/${seedOf(plan)},`));
  assert.match(vm?.config.get('boot') ?? '', /^order=scsi0(;|$)/, 'it boots from its disk');
  const [seed, ...others] = simulator.isos();
  assert.deepEqual([seed?.name, others.length], [seedOf(plan), 0]);
  assert.equal(readSeed(seed?.bytes ?? Buffer.alloc(0))?.userData, '#cloud-config\n');
}

describe('a line that knows nothing of an earlier one', () => {
  for (const last of stages) {
    it(`adopts what one that ended after ${last} has left, and finishes it`, () =>
      withSteps(async (rig) => {
        await runLine(rig, rig.plan, last);
        const address = await runLine(rig);
        expectWhole(rig, address);
        assert.equal(rig.sent('POST', /\/clone$/).length, 1);
        assert.equal(rig.sent('POST', /\/status\/start$/).length, 1);
        assert.deepEqual(rig.sent('DELETE', /./), [], 'nothing is deleted before it is made again');
      }));
  }

  it('waits for a clone under way and adopts what it makes', () =>
    withSteps(async (rig) => {
      const { ref, plan, vmid } = rig;
      const { upid } = await rig.run(cloneTemplate, { ref, plan, vmid, templateNode: 'pve1' });
      await eventually(() => rig.simulator.cluster.vms.has(vmid));
      expectReason(await rig.refusal(allocateVmid, looking(rig)), 'WaitingForLock');
      hurry(rig);
      await rig.finish(upid);
      rig.simulator.setTimeScale(0.01);
      expectWhole(rig, await runLine(rig));
      assert.equal(rig.sent('POST', /\/clone$/).length, 1);
    }, longClones));

  it('writes seed, config and size again to a VM that stopped, and starts it', () =>
    withSteps(async (rig) => {
      await runLine(rig);
      const vm = rig.simulator.cluster.vms.get(rig.vmid);
      assert.ok(vm);
      powerOff(rig.simulator.core, vm);
      vm.config.set('cores', '4');
      vm.config.set('ide2', 'none,media=cdrom');
      expectWhole(rig, await runLine(rig));
      assert.equal(rig.sent('POST', /\/upload$/).length, 2);
    }));

  it('sends a running VM nothing at all', () =>
    withSteps(async (rig) => {
      const address = await runLine(rig);
      const before = rig.simulator.requests.length;
      assert.equal(await runLine(rig), address);
      const later = rig.simulator.requests.slice(before);
      assert.ok(later.every(({ method }) => method === 'GET'));
    }));

  it('adopts its VM wherever in the cluster and at whatever VMID', () =>
    withSteps(async (rig) => {
      rig.place({ vmid: 777, node: 'pve2' });
      const found = await rig.run(allocateVmid, looking(rig));
      assert.deepEqual(found.kind === 'ours' && [found.vmid, found.node], [777, 'pve2']);
    }));
});

describe('an edit of the catalogue', () => {
  it('changes the VMs made afterwards and leaves those that exist alone', () =>
    withSteps(async (rig) => {
      await runLine(rig);
      rig.configure({
        templates: { 'debian-13': { vmid: 9002 } },
        machineTypes: { small: { cores: 8, memoryMiB: 8_192, diskGiB: 4 } },
      });
      const placement = { region: null, zone: 'pve1', machineType: 'small', image: 'debian-13' };
      const { ref, plan } = rig;
      const { specHash, deletionPolicy } = plan;
      const input = { ref, provider: 'pve', placement, specHash, deletionPolicy };
      const later = await rig.run(resolvePlacement, input);
      const facts = [later.templateVmid, later.cores, later.memoryMiB, later.diskGiB];
      assert.deepEqual(facts, [9002, 8, 8_192, 4]);
      assert.equal(later.vmName, plan.vmName, 'so the VM that exists is still the wanted one');
      const before = rig.simulator.requests.length;
      expectWhole(rig, await runLine(rig, later));
      assert.ok(rig.simulator.requests.slice(before).every(({ method }) => method === 'GET'));
    }));

  for (const [fate, change] of fates()) {
    it(`does not matter to a VM that exists when its template ${fate}`, () =>
      withSteps(async (rig) => {
        await runLine(rig, rig.plan, 'clone');
        change(rig);
        expectWhole(rig, await runLine(rig));
        assert.equal(rig.sent('POST', /\/clone$/).length, 1);
      }));

    it(`matters to a new VM when the template ${fate}`, () =>
      withSteps(async (rig) => {
        change(rig);
        expectReason(await rig.refusal(allocateVmid, looking(rig)), 'TemplateUnusable');
        assert.equal(rig.sent('POST', /\/clone$/).length, 0);
      }));
  }

  it('does not reach the disks of a VM: they are copies, none is linked to the template', () =>
    withSteps(async (rig) => {
      await runLine(rig, rig.plan, 'clone');
      const disks = rig.simulator.cluster.storages.volumes.filter(({ vmid }) => vmid === rig.vmid);
      assert.deepEqual(
        disks.map(({ base }) => base),
        [null],
      );
    }));
});

function fates(): [string, (rig: StepRig) => void][] {
  const template = ({ simulator }: StepRig): Map<string, string> => {
    const vm = simulator.cluster.vms.get(9001);
    if (vm === undefined) throw new Error('the fixture has no template');
    return vm.config;
  };
  return [
    ['is gone', ({ simulator }) => void simulator.cluster.vms.delete(9001)],
    ['is an ordinary VM now', (rig) => void template(rig).delete('template')],
    [
      'got a cloud-init drive',
      (rig) => void template(rig).set('ide0', 'local:9001/vm-9001-cloudinit.qcow2,media=cdrom'),
    ],
  ];
}

describe('what a clone inherits', () => {
  it('is kept where it is none of our business (onboot), and is no obstacle', () =>
    withSteps(
      async (rig) => {
        expectWhole(rig, await runLine(rig));
        assert.equal(rig.simulator.cluster.vms.get(rig.vmid)?.config.get('onboot'), '1');
      },
      { fixture: templateWith({ onboot: 1 }) },
    ));

  it('is undone where it would keep us from removing the VM (protection)', () =>
    withSteps(
      async (rig) => {
        expectWhole(rig, await runLine(rig));
        assert.equal(rig.simulator.cluster.vms.get(rig.vmid)?.config.has('protection'), false);
      },
      { fixture: templateWith({ protection: 1 }) },
    ));

  it('is replaced where the specification says so (agent options, tags, an old ISO on ide2)', () =>
    withSteps(
      async (rig) => {
        expectWhole(rig, await runLine(rig));
      },
      {
        fixture: templateWith({
          agent: '1,fstrim_cloned_disks=1,type=virtio',
          tags: 'template;old',
          ide2: 'none,media=cdrom',
        }),
      },
    ));
});

function templateWith(changes: Record<string, string | number>): ReturnType<typeof stepFixture> {
  return stepFixture({ vms: [{ vmid: 9001, node: 'pve1', config: aTemplate(9001, changes) }] });
}
