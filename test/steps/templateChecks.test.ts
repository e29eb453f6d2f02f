/** What keeps a template from being cloned, told before any clone is sent (specification, Proxmox prerequisites 2). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { allocateVmid } from '../../activities/allocateVmid.ts';
import { resolvePlacement } from '../../activities/resolvePlacement.ts';
import type { Plan } from '../../workflows/contract/steps.ts';
import { withChecks } from '../support/healthRig.ts';
import { looking } from '../support/lifeOfSteps.ts';
import { writes } from '../support/removals.ts';
import { aTemplate, stepFixture } from '../support/stepFixture.ts';
import { expectReason, withSteps, type StepRig } from '../support/stepHarness.ts';

describe('a template in the catalogue', () => {
  const unfit: [title: string, vmid: number, text: string][] = [
    ['is missing', 9999, 'placement.image "debian-13": template VM 9999 does not exist'],
    ['is an ordinary VM', 9010, 'placement.image "debian-13": template VM 9010 is not a template'],
    ['is a container', 9011, 'placement.image "debian-13": template VM 9011 is not a template'],
    ['has a cloud-init drive', 9012, 'has a Proxmox cloud-init drive on ide2'],
  ];
  for (const [title, templateVmid, text] of unfit) {
    it(`is refused when it ${title}, before any clone`, () =>
      withSteps(
        async (rig) => {
          const plan = { ...rig.plan, templateVmid };
          const error = await rig.refusal(allocateVmid, looking(rig, { plan }));
          expectReason(error, 'TemplateUnusable');
          assert.deepEqual([error.errorClass, error.facts.scope], ['Permanent', 'provider']);
          assert.ok(error.message.includes(text), error.message);
          assert.deepEqual(writes(rig), []);
        },
        {
          fixture: stepFixture({
            vms: [
              { vmid: 9010, node: 'pve1', config: { name: 'web', cores: 1 } },
              {
                vmid: 9012,
                node: 'pve1',
                config: aTemplate(9012, { ide2: 'local:vm-9012-cloudinit,media=cdrom' }),
              },
            ],
            containers: [{ vmid: 9011, node: 'pve1', name: 'ct' }],
          }),
        },
      ));
  }

  const { net0: _nic, ...withoutNic } = aTemplate(9001);
  const withoutBootDisk = aTemplate(9001, { boot: 'order=net0' });
  const withoutSize = aTemplate(9001, { scsi0: 'local:9001/base-9001-disk-0.qcow2' });
  const sized = { machineTypes: { small: { cores: 1, memoryMiB: 512, diskGiB: 1 } } };
  const lacking: [string, Record<string, string | number>, Record<string, unknown>, string][] = [
    ['a NIC when the config sets a bridge', withoutNic, { bridge: 'vmbr1' }, 'has no net0'],
    ['a NIC when the config sets a VLAN', withoutNic, { vlanTag: 4 }, 'has no net0'],
    ['a boot disk when the machine type sets a size', withoutBootDisk, sized, 'has no boot disk'],
    ['the size of its boot disk when the machine type sets one', withoutSize, sized, 'scsi0 without a readable size='], // prettier-ignore
  ];
  for (const [title, config, settings, text] of lacking) {
    it(`is refused when it lacks ${title}, and not without that setting`, () =>
      withSteps(
        async (rig) => {
          rig.configure(settings);
          const wanted = looking(rig, { plan: await planned(rig) });
          const error = expectReason(await rig.refusal(allocateVmid, wanted), 'TemplateUnusable');
          assert.deepEqual([error.errorClass, error.facts.scope], ['Permanent', 'provider']);
          assert.ok(error.message.includes(`template VM 9001 `), error.message);
          assert.ok(error.message.includes(text), error.message);
          rig.configure({});
          const other = looking(rig, { plan: await planned(rig) });
          assert.equal((await rig.run(allocateVmid, other)).kind, 'vacant');
          assert.deepEqual(writes(rig), []);
        },
        { fixture: stepFixture({ vms: [{ vmid: 9001, node: 'pve1', config }] }) },
      ));
  }
});

describe('the check of a node', () => {
  it('looks into no template: one that no clone will be made of is fine, for as long as it is there', () => {
    const { net0: _none, ...config } = aTemplate(9001, { ide0: 'local:vm-9001-cloudinit,media=cdrom' }); // prettier-ignore
    return withChecks(
      async (rig, { check }) => {
        rig.configure({ bridge: 'vmbr1' });
        const { reason, details } = await check('pve1');
        assert.deepEqual([reason, details['templates']], ['Reachable', '1/1']);
        assert.deepEqual(rig.sent('GET', /\/config$/), []);
        const wanted = looking(rig, { plan: await planned(rig) });
        expectReason(await rig.refusal(allocateVmid, wanted), 'TemplateUnusable');
      },
      { fixture: stepFixture({ vms: [{ vmid: 9001, node: 'pve1', config }] }) },
    );
  });
});

/** By the config in force. */
async function planned(rig: StepRig): Promise<Plan> {
  const { ref, plan } = rig;
  const { specHash, deletionPolicy } = plan;
  const placement = { region: null, zone: 'pve1', machineType: 'small', image: 'debian-13' };
  return rig.run(resolvePlacement, { ref, provider: 'pve', placement, specHash, deletionPolicy });
}
