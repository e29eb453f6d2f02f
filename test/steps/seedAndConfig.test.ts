import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { configureVm } from '../../activities/configureVm.ts';
import { resizeDisk } from '../../activities/resizeDisk.ts';
import { uploadSeed } from '../../activities/uploadSeed.ts';
import type { ConfigureForStartInput, UploadSeedInput } from '../../workflows/contract/steps.ts';
import { readSeed } from '../simulator/iso.ts';
import { powerOn } from '../simulator/power.ts';
import { eventually } from '../support/eventually.ts';
import { aProxy } from '../support/memoryRecords.ts';
import { addIso } from '../support/simulatedVolumes.ts';
import { expectReason, hashOf, seedOf, withSteps, type StepRig } from '../support/stepHarness.ts';

const canary = 'cloud-init-canary-7f3a';

function seeding(rig: StepRig): UploadSeedInput {
  return { ref: rig.ref, plan: rig.plan, vm: rig.vmRef() };
}

async function uploaded(rig: StepRig): Promise<number> {
  const { upid, bytes } = await rig.run(uploadSeed, seeding(rig));
  await rig.finish(upid);
  return bytes;
}

function configuring(
  rig: StepRig,
  fields: Partial<ConfigureForStartInput> = {},
): ConfigureForStartInput {
  return { kind: 'start', ...seeding(rig), seedBytes: 0, clearProtection: false, ...fields };
}

describe('uploadSeed', () => {
  it('puts cloud-init from a Secret byte for byte on the node the VM is on', () =>
    withSteps(async (rig) => {
      rig.place({ node: 'pve2' });
      const content = `#!/bin/sh\necho ${canary}\r\n`;
      rig.records.secrets.set('egress/init/user-data', Buffer.from(content));
      const secretKeyRef = { name: 'init', key: 'user-data' };
      rig.records.put(aProxy({ spec: { cloudInit: undefined, cloudInitFrom: { secretKeyRef } } }));
      const plan = { ...rig.plan, specHash: hashOf(content) };
      const result = await rig.run(uploadSeed, { ...seeding(rig), plan });
      await rig.finish(result.upid);
      const [seed, ...others] = rig.simulator.isos();
      assert.deepEqual([seed?.node, seed?.name, others.length], ['pve2', seedOf(plan), 0]);
      assert.deepEqual([result.node, result.bytes], ['pve2', seed?.size]);
      assert.equal(readSeed(seed?.bytes ?? Buffer.alloc(0))?.userData, content);
      assert.ok(!JSON.stringify([rig.lines, result]).includes(canary));
    }));

  it('uploads again when asked again, to one file', () =>
    withSteps(async (rig) => {
      rig.place();
      assert.equal(await uploaded(rig), await uploaded(rig));
      assert.equal(rig.simulator.isos().length, 1);
    }));

  it('starts the line again when cloud-init changed since the plan', () =>
    withSteps(async (rig) => {
      rig.place();
      rig.records.put(aProxy({ spec: { cloudInit: `#cloud-config\n# ${canary}\n` } }));
      const error = expectReason(await rig.refusal(uploadSeed, seeding(rig)), 'CloudInitChanged');
      assert.equal(error.facts.goBack, true);
      assert.ok(!error.message.includes(canary));
      assert.deepEqual(rig.simulator.isos(), []);
    }));

  it('waits for a missing Secret', () =>
    withSteps(async (rig) => {
      rig.place();
      const secretKeyRef = { name: 'init', key: 'user-data' };
      rig.records.put(aProxy({ spec: { cloudInit: undefined, cloudInitFrom: { secretKeyRef } } }));
      expectReason(await rig.refusal(uploadSeed, seeding(rig)), 'CloudInitUnavailable');
    }));

  it('leaves the seed of a running VM alone', () =>
    withSteps(async (rig) => {
      const vm = rig.place();
      await uploaded(rig);
      powerOn(rig.simulator.core, vm);
      assert.deepEqual(await rig.run(uploadSeed, seeding(rig)), {
        upid: null,
        node: 'pve1',
        bytes: 0,
      });
      assert.equal(rig.sent('POST', /\/upload$/).length, 1);
    }));

  it('makes no seed for a VM that is not its own', () =>
    withSteps(async (rig) => {
      rig.place({ uid: '22222222-2222-4222-8222-222222222222' });
      const error = expectReason(await rig.refusal(uploadSeed, seeding(rig)), 'VmVanished');
      assert.deepEqual([error.errorClass, error.facts.goBack], ['Transient', true]);
      assert.deepEqual(rig.simulator.isos(), []);
    }));

  it('is tried again after a cut connection, and the truncated file is replaced (cases.md 15)', () =>
    withSteps(async (rig) => {
      rig.place();
      const action = { kind: 'reset', when: 'before' } as const;
      rig.simulator.faults.push({ method: 'POST', path: /\/upload$/, action });
      const error = await rig.refusal(uploadSeed, seeding(rig));
      assert.deepEqual([error.errorClass, error.facts.outcomeUnknown], ['Transient', true]);
      addIso(rig.simulator, { file: seedOf(rig.plan), node: 'pve1', size: 20_480 });
      const early = configuring(rig, { seedBytes: 40_960 });
      expectReason(await rig.refusal(configureVm, early), 'UploadNotConfirmed');
      const seedBytes = await uploaded(rig);
      await rig.run(configureVm, configuring(rig, { seedBytes }));
      assert.equal(rig.simulator.isos()[0]?.size, seedBytes);
    }));

  it('tells at once what no retry can mend: a storage without iso (cases.md 15)', () =>
    withSteps(async (rig) => {
      rig.place();
      const plan = { ...rig.plan, isoStorage: 'local' };
      const error = await rig.refusal(uploadSeed, { ...seeding(rig), plan });
      assert.equal(error.errorClass, 'Permanent');
      assert.match(error.message, /storage 'local' does not support 'iso' content/);
    }));
});

describe('configureVm', () => {
  it('writes once, keeps the lines of others and moves net0 without changing its MAC', () =>
    withSteps(async (rig) => {
      const vm = rig.place({ config: { protection: '1', tags: 'template' } });
      vm.config.set('description', `kept by hand\n${vm.config.get('description') ?? ''}`);
      const seedBytes = await uploaded(rig);
      const plan = { ...rig.plan, vlanTag: 4, deletionPolicy: 'Retain' } as const;
      const input = { ...configuring(rig, { seedBytes, clearProtection: true }), plan };
      const { changed } = await rig.run(configureVm, input);
      assert.deepEqual(changed.toSorted(), [
        'cores',
        'description',
        'ide2',
        'memory',
        'net0',
        'protection',
        'tags',
      ]);
      assert.equal(vm.config.get('net0'), 'virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=4');
      assert.equal(vm.config.has('protection'), false);
      const description = vm.config.get('description') ?? '';
      assert.match(description, /^kept by hand\n/);
      assert.match(description, /proxy-operator-deletion-policy=Retain/);
      assert.match(description, /proxy-operator-created-at=2026-11-29T14:50:00Z/);
      assert.deepEqual(await rig.run(configureVm, input), { changed: [], found: true });
      assert.equal(rig.sent('PUT', /\/config$/).length, 1);
      assert.ok(rig.sent('PUT', /\/config$/)[0]?.params['digest']);
    }));

  it('attaches no seed that the node does not list with its size', () =>
    withSteps(async (rig) => {
      rig.place({ node: 'pve1' });
      const error = await rig.refusal(configureVm, configuring(rig, { seedBytes: 4_096 }));
      expectReason(error, 'UploadNotConfirmed');
      assert.equal(error.facts.goBack, true);
      assert.equal(rig.sent('PUT', /\/config$/).length, 0);
    }));

  it('writes only mark and tag on a VM that runs', () =>
    withSteps(async (rig) => {
      const vm = rig.place({ config: { tags: 'mine' } });
      powerOn(rig.simulator.core, vm);
      const plan = { ...rig.plan, deletionPolicy: 'Retain' } as const;
      const { changed } = await rig.run(configureVm, { ...configuring(rig), plan });
      assert.deepEqual(changed.toSorted(), ['description', 'tags']);
      assert.deepEqual(vm.config.get('tags')?.split(';'), ['mine', 'proxy_operator']);
      assert.equal(vm.config.get('cores'), '2');
    }));

  it('completes the mark of a VM it adopts on its name', () =>
    withSteps(async (rig) => {
      const description = 'proxy-operator-managed=true\nproxy-operator-uid=';
      const vm = rig.place({ config: { description } });
      const seedBytes = await uploaded(rig);
      await rig.run(configureVm, configuring(rig, { seedBytes }));
      assert.match(vm.config.get('description') ?? '', new RegExp(rig.ref.uid));
    }));

  it('waits for a lock', () =>
    withSteps(async (rig) => {
      rig.place({ config: { lock: 'backup' } });
      expectReason(await rig.refusal(configureVm, configuring(rig)), 'WaitingForLock');
    }));
});

describe('resizeDisk', () => {
  it('asks Proxmox for nothing when the machine type sets no size', () =>
    withSteps(async (rig) => {
      assert.deepEqual(await rig.run(resizeDisk, seeding(rig)), { upid: null });
      assert.equal(rig.simulator.requests.length, 0);
    }));

  it('grows the boot disk once and never shrinks it', () =>
    withSteps(async (rig) => {
      rig.place();
      const input = { ...seeding(rig), plan: { ...rig.plan, diskGiB: 2 } };
      await rig.finish((await rig.run(resizeDisk, input)).upid);
      assert.deepEqual(await rig.run(resizeDisk, input), { upid: null });
      const smaller = { ...input, plan: { ...rig.plan, diskGiB: 1 } };
      assert.deepEqual(await rig.run(resizeDisk, smaller), { upid: null });
      assert.equal(rig.sent('PUT', /\/resize$/).length, 1);
    }));

  it("goes by the volume's actual size, not by what the config says", () =>
    withSteps(async (rig) => {
      const vm = rig.place();
      const input = { ...seeding(rig), plan: { ...rig.plan, diskGiB: 2 } };
      await rig.finish((await rig.run(resizeDisk, input)).upid);
      await eventually(() => vm.config.get('scsi0')?.includes('size=2G') === true);
      vm.config.set('scsi0', `local:${rig.vmid}/vm-${rig.vmid}-disk-0.qcow2,size=64M`);
      assert.deepEqual(await rig.run(resizeDisk, input), { upid: null });
    }));
});
