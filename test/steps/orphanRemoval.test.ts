/** The last look before an orphan goes: every step asks Proxmox and Kubernetes once more. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { deleteSeed } from '../../activities/deleteSeed.ts';
import { destroyVm } from '../../activities/destroyVm.ts';
import { stopVm } from '../../activities/stopVm.ts';
import { installationHex } from '../../activities/vm/identity.ts';
import type { DeleteSeedInput, StopVmInput } from '../../workflows/contract/removalSteps.ts';
import { powerOn } from '../simulator/power.ts';
import { aRef } from '../support/aPlan.ts';
import { aProxy } from '../support/memoryRecords.ts';
import { addSeed, lostUid, nameOf, placeOrphan } from '../support/orphanRig.ts';
import { ended, removing, writes } from '../support/removals.ts';
import { expectReason, withSteps, type PlacedVm, type StepRig } from '../support/stepHarness.ts';

const name = nameOf(lostUid);

function collecting(rig: StepRig): StopVmInput {
  return removing(rig, {
    ref: aRef({ name: 'lost', uid: lostUid }),
    vm: rig.vmRef({ vmid: 300, name }),
    purpose: 'orphan',
  });
}

/** Kubernetes has a Proxy of that UID again, whatever it is called. */
function comesBack(rig: StepRig): void {
  rig.records.put(aProxy({ metadata: { ...aRef({ name: 'renamed', uid: lostUid }) } }));
}

function placeRunning(rig: StepRig, fields: PlacedVm = {}): void {
  placeOrphan(rig, fields);
  const vm = rig.simulator.cluster.vms.get(300);
  assert.ok(vm);
  powerOn(rig.simulator.core, vm);
}

describe('an orphan', () => {
  it('is stopped, destroyed and proven gone', () =>
    withSteps(async (rig) => {
      placeRunning(rig);
      const input = collecting(rig);
      const stopping = await rig.run(stopVm, input);
      assert.equal(stopping.kind, 'task');
      await ended(rig, stopping.kind === 'task' ? stopping.upid : '', 'stop');
      const destroying = await rig.run(destroyVm, input);
      assert.equal(destroying.kind, 'task');
      await ended(rig, destroying.kind === 'task' ? destroying.upid : '', 'destroy');
      assert.deepEqual(await rig.run(destroyVm, input), { kind: 'gone' });
      assert.equal(rig.simulator.cluster.vms.has(300), false);
    }));

  it('is kept by each step when a Proxy has its UID, under whatever name', () =>
    withSteps(async (rig) => {
      placeRunning(rig);
      comesBack(rig);
      expectReason(await rig.refusal(stopVm, collecting(rig)), 'StillWanted');
      rig.simulator.powerOffVm(300);
      expectReason(await rig.refusal(destroyVm, collecting(rig)), 'StillWanted');
      assert.deepEqual(writes(rig), []);
    }));

  const kept: [string, PlacedVm][] = [
    ['names no installation', { config: { description: `proxy-operator-managed=true\nproxy-operator-uid=${lostUid}` } }], // prettier-ignore
    ['says Retain', { config: { description: `proxy-operator-managed=true\nproxy-operator-uid=${lostUid}\nproxy-operator-installation=5f0c1d4e-0000-4000-8000-00000000c0de\nproxy-operator-deletion-policy=Retain` } }], // prettier-ignore
  ];
  for (const [what, fields] of kept) {
    it(`is kept when its mark ${what} by now`, () =>
      withSteps(async (rig) => {
        placeRunning(rig, fields);
        expectReason(await rig.refusal(stopVm, collecting(rig)), 'StillWanted');
        rig.simulator.powerOffVm(300);
        expectReason(await rig.refusal(destroyVm, collecting(rig)), 'StillWanted');
        assert.deepEqual(writes(rig), []);
      }));
  }

  it('is kept by each step when another VM has its name by now', () =>
    withSteps(async (rig) => {
      placeRunning(rig);
      placeOrphan(rig, { vmid: 301, node: 'pve2' });
      expectReason(await rig.refusal(stopVm, collecting(rig)), 'StillWanted');
      rig.simulator.powerOffVm(300);
      expectReason(await rig.refusal(destroyVm, collecting(rig)), 'StillWanted');
      assert.deepEqual(writes(rig), []);
    }));

  it('is kept by each step when another VM has its name, although its own row tells none', () =>
    withSteps(
      async (rig) => {
        placeRunning(rig);
        placeOrphan(rig, { vmid: 301, node: 'pve2' });
        rig.simulator.cluster.stats.delete(300);
        expectReason(await rig.refusal(stopVm, collecting(rig)), 'StillWanted');
        rig.simulator.powerOffVm(300);
        rig.simulator.cluster.stats.delete(300);
        expectReason(await rig.refusal(destroyVm, collecting(rig)), 'StillWanted');
        assert.deepEqual(writes(rig), []);
      },
      // Statistics come every ten seconds then, and not in the middle of the test.
      { timeScale: 1 },
    ));

  it('is kept by each step while a VM on a silent node tells no name', () =>
    withSteps(async (rig) => {
      placeRunning(rig);
      rig.place({ vmid: 301, node: 'pve2', config: { name: 'web-1' } });
      rig.simulator.setNode('pve2', { state: 'dead' });
      rig.simulator.cluster.stats.delete(301);
      const told = await rig.refusal(stopVm, collecting(rig));
      expectReason(told, 'StillWanted');
      assert.match(told.message, /VM 301 on pve2 cannot be read, and may have its name/);
      rig.simulator.powerOffVm(300);
      expectReason(await rig.refusal(destroyVm, collecting(rig)), 'StillWanted');
      assert.deepEqual(writes(rig), []);
    }));

  it('is left alone when it was retained by now, or is another VM', () =>
    withSteps(async (rig) => {
      placeOrphan(rig);
      const { config } = rig.simulator.cluster.vms.get(300) ?? {};
      const mark = config?.get('description') ?? '';
      config?.set('description', mark.replace('managed=true', 'managed=retained'));
      assert.deepEqual(await rig.run(destroyVm, collecting(rig)), { kind: 'gone' });
      config?.set('description', mark);
      config?.set('name', 'web-1');
      rig.simulator.refreshStats();
      assert.deepEqual(await rig.run(destroyVm, collecting(rig)), { kind: 'gone' });
      assert.deepEqual(writes(rig), []);
    }));

  it('is never one of another installation, whatever the input says', () =>
    withSteps(async (rig) => {
      const theirs = nameOf(lostUid, { hex: installationHex('elsewhere') });
      rig.place({ vmid: 300, uid: lostUid, installation: 'elsewhere', config: { name: theirs } });
      const vm = rig.vmRef({ vmid: 300, name: theirs });
      for (const step of [stopVm, destroyVm]) {
        expectReason(await rig.refusal(step, { ...collecting(rig), vm }), 'InstallationMismatch');
      }
      assert.deepEqual(writes(rig), []);
    }));
});

describe('the seed of an orphan', () => {
  function input(rig: StepRig, file: string): DeleteSeedInput {
    return {
      ref: null,
      provider: rig.plan.provider,
      vmName: name,
      seedFile: file,
      node: 'pve1',
      vmid: null,
      isoStorage: null,
      orphan: true,
    };
  }

  it('is deleted although nobody knows its VMID', () =>
    withSteps(async (rig) => {
      const file = addSeed(rig, name);
      assert.equal((await rig.run(deleteSeed, input(rig, file))).kind, 'task');
    }));

  it('is kept when a Proxy has its UID', () =>
    withSteps(async (rig) => {
      const file = addSeed(rig, name);
      comesBack(rig);
      expectReason(await rig.refusal(deleteSeed, input(rig, file)), 'StillWanted');
      assert.deepEqual(writes(rig), []);
    }));

  it('is kept while Kubernetes cannot be asked', () =>
    withSteps(async (rig) => {
      const file = addSeed(rig, name);
      rig.records.survey = () => Promise.reject(new Error('no answer'));
      await assert.rejects(rig.run(deleteSeed, input(rig, file)), /no answer/);
      assert.deepEqual(writes(rig), []);
    }));

  it('is kept while a VM has its name', () =>
    withSteps(async (rig) => {
      const file = addSeed(rig, name);
      placeOrphan(rig);
      expectReason(await rig.refusal(deleteSeed, input(rig, file)), 'DeletionBlocked');
      assert.deepEqual(writes(rig), []);
    }));
});
