import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { allocateVmid } from '../../activities/allocateVmid.ts';
import { cloneTemplate } from '../../activities/cloneTemplate.ts';
import { destroyVm } from '../../activities/destroyVm.ts';
import { formatMark, installationHex, parseMark, vmNameFor } from '../../activities/vm/identity.ts';
import { eventually } from '../support/eventually.ts';
import { looking, runLine, runRemoval } from '../support/lifeOfSteps.ts';
import { removing, writes } from '../support/removals.ts';
import { expectReason, withSteps, type StepRig } from '../support/stepHarness.ts'; // prettier-ignore

describe('two VMs of one name', () => {
  it('are both named, and neither is touched until one is gone', () =>
    withSteps(async (rig) => {
      rig.place();
      rig.place({ vmid: 300, node: 'pve2' });
      const error = expectReason(await rig.refusal(allocateVmid, looking(rig)), 'DuplicateVm');
      assert.equal(error.errorClass, 'Permanent');
      for (const text of [String(rig.vmid), '300', rig.plan.vmName]) {
        assert.ok(error.message.includes(text), text);
      }
      assert.deepEqual(writes(rig), []);
      rig.simulator.removeVm(300);
      const found = await rig.run(allocateVmid, looking(rig));
      assert.deepEqual(found.kind === 'ours' && found.vmid, rig.vmid);
    }));

  it('are no two while the VMID of one was given up: it is the other one that counts', () =>
    withSteps(async (rig) => {
      rig.place();
      rig.place({ vmid: 300, node: 'pve2' });
      const found = await rig.run(allocateVmid, looking(rig, { avoidVmids: [rig.vmid] }));
      assert.deepEqual(found.kind === 'ours' && found.vmid, 300);
      assert.deepEqual(writes(rig), []);
    }));
});

describe('a VM that another installation made for this Proxy', () => {
  const other = 'another-cluster';

  function placeOthers(rig: StepRig): ReturnType<StepRig['place']> {
    const { ref, plan } = rig;
    const name = vmNameFor({
      proxyName: ref.name,
      uid: ref.uid,
      installationHex: installationHex(other),
      specHash: plan.specHash,
    });
    return rig.place({ installation: other, config: { name } });
  }

  it('stops everything: nothing is made, nothing removed', () =>
    withSteps(async (rig) => {
      placeOthers(rig);
      expectReason(await rig.refusal(allocateVmid, looking(rig)), 'InstallationMismatch');
      rig.records.markDeleting(rig.ref);
      expectReason(await rig.refusal(destroyVm, removing(rig)), 'InstallationMismatch');
      assert.deepEqual(writes(rig), []);
    }));

  it('is taken over with --also-installation: its mark is ours then, it keeps its name, and it is found again', () =>
    withSteps(async (rig) => {
      const vm = placeOthers(rig);
      const name = vm.config.get('name');
      rig.deps.installation = { ...rig.deps.installation, also: [other] };
      await runLine(rig);
      assert.equal(vm.config.get('name'), name);
      const mark = parseMark(vm.config.get('description') ?? '');
      assert.equal(mark?.installation, rig.deps.installation.id);
      assert.deepEqual(rig.sent('POST', /\/clone$/), []);
      const again = await rig.run(allocateVmid, looking(rig));
      assert.deepEqual([again.kind, 'vmid' in again && again.vmid], ['ours', rig.vmid]);
      await runRemoval(rig);
      assert.equal(rig.simulator.cluster.vms.has(rig.vmid), false);
    }));
});

describe('the mark', () => {
  it('is part of the clone request, and in the first config that has a name', () =>
    withSteps(async (rig) => {
      const { ref, plan, vmid } = rig;
      const { upid } = await rig.run(cloneTemplate, { ref, plan, vmid, templateNode: 'pve1' });
      const [request] = rig.sent('POST', /\/clone$/);
      const asked = parseMark(String(request?.params['description']));
      assert.deepEqual([asked?.managed, asked?.uid], ['true', ref.uid]);
      await eventually(() => {
        const config = rig.simulator.cluster.vms.get(vmid)?.config;
        const named = config?.has('name') === true;
        if (named) assert.equal(parseMark(config.get('description') ?? '')?.uid, ref.uid);
        return named;
      });
      await rig.finish(upid);
    }));

  it('of a VM without UID is completed by the line that adopts it, and lines of others stay', () =>
    withSteps(async (rig) => {
      const bare = { managed: 'true', uid: '', createdAt: null, installation: null } as const;
      const mark = formatMark({ ...bare, proxy: null, spec: null, deletionPolicy: null });
      const vm = rig.place({ config: { description: `owner: team egress\n${mark}` } });
      await runLine(rig);
      const description = vm.config.get('description') ?? '';
      assert.match(description, /^owner: team egress\n/);
      assert.equal(parseMark(description)?.uid, rig.ref.uid);
      assert.deepEqual(rig.sent('POST', /\/clone$/), []);
    }));
});

describe('destroyUnreferencedDisks', () => {
  for (const [setting, sent] of [
    [true, '1'],
    [false, undefined],
  ] as const) {
    // prettier-ignore
    it(`${setting}: is what the destroy asks for`, () =>
      withSteps(async (rig) => {
        rig.configure({ destroyUnreferencedDisks: setting });
        rig.place();
        await runRemoval(rig);
        const [request] = rig.sent('DELETE', /\/qemu\/\d+$/);
        const asked = request?.params['destroy-unreferenced-disks'];
        assert.ok(asked === sent || (sent === undefined && asked === '0'), String(asked));
        assert.equal(request?.params['purge'], '1');
      }));
  }
});
