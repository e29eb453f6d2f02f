/** What the provider's config says about VMs, seen on a VM that was made under it (specification, Config reference). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { resolvePlacement } from '../../activities/resolvePlacement.ts';
import { guestAgentScript } from '../../activities/seed/guestAgent.ts';
import type { Plan } from '../../workflows/contract/steps.ts';
import { readIso } from '../simulator/iso.ts';
import { runLine, runRemoval } from '../support/lifeOfSteps.ts';
import { withSteps, type StepRig } from '../support/stepHarness.ts';

interface Made {
  plan: Plan;
  /** Config of the VM. */
  values: ReadonlyMap<string, string>;
  /** Files of its seed, as text. */
  seed: Record<string, string>;
}

/** A VM that is ready to be started, made by these settings. */
async function madeWith(rig: StepRig, settings: Record<string, unknown>): Promise<Made> {
  rig.configure(settings);
  const { ref, plan: wanted } = rig;
  const { specHash, deletionPolicy } = wanted;
  const placement = { region: null, zone: 'pve1', machineType: 'small', image: 'debian-13' };
  const input = { ref, provider: 'pve', placement, specHash, deletionPolicy };
  const plan = await rig.run(resolvePlacement, input);
  await runLine(rig, plan, 'resize');
  const [iso] = rig.simulator.isos();
  const files = readIso(iso?.bytes ?? Buffer.alloc(0))?.files ?? new Map<string, Buffer>();
  const seed = Object.fromEntries([...files].map(([name, bytes]) => [name, bytes.toString()]));
  const values = rig.simulator.vms().find(({ config }) => config.get('name') === plan.vmName)?.config; // prettier-ignore
  assert.ok(values);
  return { plan, values, seed };
}

const vendorData = '#cloud-config\nntp: {enabled: true}\n';

describe("the provider's config reaches the VM", () => {
  it('machine type: cores, memory, and the size of the boot disk', () =>
    withSteps(async (rig) => {
      const small = { cores: 3, memoryMiB: 768, diskGiB: 1 };
      const { values } = await madeWith(rig, { machineTypes: { small } });
      assert.deepEqual([values.get('cores'), values.get('memory')], ['3', '768']);
      assert.match(values.get('scsi0') ?? '', /,size=1G$/);
    }));

  for (const [what, settings, placed] of [
    ['bridge', { bridge: 'vmbr7' }, 'bridge=vmbr7'],
    ['vlanTag', { vlanTag: 12 }, 'bridge=vmbr0,tag=12'],
    ['bridge and vlanTag', { bridge: 'vmbr7', vlanTag: 12 }, 'bridge=vmbr7,tag=12'],
    ['neither bridge nor vlanTag', {}, 'bridge=vmbr0'],
  ] as const) {
    it(`${what}: on the NIC, which keeps the MAC that the clone got`, () =>
      withSteps(async (rig) => {
        const { values } = await madeWith(rig, settings);
        const [, mac = '', rest = ''] = /^virtio=([0-9A-F:]{17}),(.*)$/.exec(values.get('net0') ?? '') ?? []; // prettier-ignore
        assert.equal(rest, placed);
        assert.notEqual(mac, 'BC:24:11:0C:74:DE', "that of the template is the template's");
        for (const { params } of rig.sent('PUT', /\/config$/)) {
          const sent = params['net0'];
          assert.ok(sent === undefined || String(sent).includes(mac), String(sent));
        }
      }));
  }

  it('isoStorage: holds the seed, which the VM has in its drive, and from there it is deleted', () =>
    withSteps(async (rig) => {
      const { plan, values } = await madeWith(rig, { isoStorage: 'shared-images' });
      const volid = `shared-images:iso/${plan.seedFile}`;
      assert.ok(values.get('ide2')?.startsWith(`${volid},media=cdrom`), values.get('ide2'));
      assert.deepEqual(rig.simulator.isos().map(({ storage }) => storage), ['shared-images']); // prettier-ignore
      await runRemoval(rig, plan);
      assert.deepEqual(rig.simulator.isos(), []);
    }));

  it('nothing about vendor-data: the seed has the script that installs the agent, and names the VM', () =>
    withSteps(async (rig) => {
      const { plan, seed } = await madeWith(rig, {});
      assert.equal(seed['vendor-data'], guestAgentScript);
      assert.equal(seed['user-data'], '#cloud-config\n');
      const { vmName } = plan;
      assert.equal(seed['meta-data'], `instance-id: ${vmName}\nlocal-hostname: ${vmName}\n`);
    }));

  it('installGuestAgent: false leaves the script out', () =>
    withSteps(async (rig) => {
      const { seed } = await madeWith(rig, { installGuestAgent: false });
      assert.deepEqual(Object.keys(seed).toSorted(), ['meta-data', 'user-data']);
    }));

  it('vendorData: on the seed as it is, without the script', () =>
    withSteps(async (rig) => {
      const { seed } = await madeWith(rig, { vendorData, installGuestAgent: false });
      assert.equal(seed['vendor-data'], vendorData);
    }));

  it('vendorData beside the script: a MIME message that has both', () =>
    withSteps(async (rig) => {
      const { seed } = await madeWith(rig, { vendorData });
      const message = seed['vendor-data'] ?? '';
      assert.match(message, /^content-type: multipart\/mixed/i);
      const parts = [...message.matchAll(/\n\r?\n([A-Za-z0-9+/=\r\n]+)\r?\n--/g)].map(([, part = '']) => Buffer.from(part, 'base64').toString()); // prettier-ignore
      assert.deepEqual(parts, [guestAgentScript, vendorData]);
    }));
});
