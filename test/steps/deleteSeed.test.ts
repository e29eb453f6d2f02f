import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { awaitTask } from '../../activities/awaitTask.ts';
import { deleteSeed } from '../../activities/deleteSeed.ts';
import { listManagedVms } from '../../activities/listManagedVms.ts';
import { cloneTemplate } from '../../activities/cloneTemplate.ts';
import { installationHex, vmNameFor } from '../../activities/vm/identity.ts';
import type { DeleteSeedInput } from '../../workflows/contract/removalSteps.ts';
import { eventually } from '../support/eventually.ts';
import { addIso } from '../support/simulatedVolumes.ts';
import { stepFixture } from '../support/stepFixture.ts';
import {
  expectReason,
  hurry,
  longClones,
  seedOf,
  withSteps,
  type StepRig,
} from '../support/stepHarness.ts';

function addSeed({ simulator, plan }: StepRig, node: string, storage = 'proxy-seeds'): void {
  addIso(simulator, { file: seedOf(plan), node, storage });
}

function seed(rig: StepRig, node = 'pve1'): DeleteSeedInput {
  const { vmName, seedFile } = rig.plan;
  return {
    ref: rig.ref,
    provider: 'pve',
    vmName,
    seedFile,
    node,
    vmid: rig.vmid,
    isoStorage: null,
  };
}

describe('deleteSeed', () => {
  it('deletes the seed on the node it is asked for and is done when the node no longer lists it', () =>
    withSteps(async (rig) => {
      addSeed(rig, 'pve1');
      addSeed(rig, 'pve2');
      const result = await rig.run(deleteSeed, seed(rig, 'pve2'));
      assert.equal(result.kind, 'task');
      const upid = result.kind === 'task' ? result.upid : '';
      await rig.run(awaitTask, { provider: 'pve', upid, kind: 'seedDelete', vmid: rig.vmid });
      const gone = await rig.run(deleteSeed, seed(rig, 'pve2'));
      assert.deepEqual(gone, { kind: 'gone', alsoOn: ['pve1'] });
      assert.deepEqual(
        rig.simulator.isos().map(({ node }) => node),
        ['pve1'],
      );
    }));

  it('tells where else the seed is, and skips nodes and storages that cannot be asked', () =>
    withSteps(async (rig) => {
      addSeed(rig, 'pve2');
      assert.deepEqual(await rig.run(deleteSeed, seed(rig)), { kind: 'gone', alsoOn: ['pve2'] });
      const action = { kind: 'status', status: 500, reason: 'no', when: 'before' } as const;
      rig.simulator.faults.push({ path: /pve2\/storage\/proxy-seeds\/content/, action });
      assert.deepEqual(await rig.run(deleteSeed, seed(rig)), { kind: 'gone' });
      const skipped = rig.lines.filter(({ msg }) => String(msg).endsWith('on a node, skipped'));
      assert.deepEqual(
        skipped.map(({ node }) => node),
        ['pve2'],
      );
      rig.simulator.setNode('pve2', { state: 'dead' });
      assert.deepEqual(await rig.run(deleteSeed, seed(rig)), { kind: 'gone' });
    }));

  it('is done where there is no seed, and on a node that the cluster does not know', () =>
    withSteps(async (rig) => {
      assert.deepEqual(await rig.run(deleteSeed, seed(rig)), { kind: 'gone' });
      assert.deepEqual(await rig.run(deleteSeed, seed(rig, 'pve9')), { kind: 'gone' });
      assert.equal(rig.sent('DELETE', /./).length, 0);
    }));

  it('keeps the seed while a VM of its name is listed', () =>
    withSteps(async (rig) => {
      addSeed(rig, 'pve1');
      rig.place({ vmid: 300, config: { description: null } });
      const error = expectReason(await rig.refusal(deleteSeed, seed(rig)), 'DeletionBlocked');
      assert.match(error.message, /VM 300 on pve1/);
      assert.equal(error.facts.remedy, 'remove or rename VM 300', 'its drive is not the reason');
      assert.equal(rig.simulator.isos().length, 1);
    }));

  it("is not held up by a row that still shows a predecessor's name", () =>
    withSteps(async (rig) => {
      addSeed(rig, 'pve1');
      rig.place().config.set('name', 'web-1');
      assert.equal((await rig.run(deleteSeed, seed(rig))).kind, 'task');
    }));

  it('keeps the seed while a VM listed under its name has it in its drive', () =>
    withSteps(async (rig) => {
      addSeed(rig, 'pve1');
      const { config } = rig.place();
      config.set('name', 'web-1');
      config.set('ide2', `proxy-seeds:iso/${seedOf(rig.plan)},media=cdrom`);
      expectReason(await rig.refusal(deleteSeed, seed(rig)), 'DeletionBlocked');
    }));

  it('keeps the seed that the VM it was made for still names, whatever that VM is called now', () =>
    withSteps(async (rig) => {
      addSeed(rig, 'pve1');
      const { config } = rig.place();
      config.set('name', 'web-1');
      config.set('ide2', `proxy-seeds:iso/${seedOf(rig.plan)},media=cdrom`);
      rig.simulator.refreshStats();
      const error = expectReason(await rig.refusal(deleteSeed, seed(rig)), 'DeletionBlocked');
      assert.match(error.message, /--ide2 none,media=cdrom/);
      assert.equal(rig.simulator.isos().length, 1);
    }));

  it('deletes from the storage it was uploaded to, although the provider has another one now', () =>
    withSteps(
      async (rig) => {
        addSeed(rig, 'pve1', 'local');
        const result = await rig.run(deleteSeed, { ...seed(rig), isoStorage: 'local' });
        assert.equal(result.kind, 'task');
        const upid = result.kind === 'task' ? result.upid : '';
        await rig.run(awaitTask, { provider: 'pve', upid, kind: 'seedDelete', vmid: rig.vmid });
        assert.deepEqual(rig.simulator.isos(), []);
      },
      {
        fixture: stepFixture({
          acls: [
            { path: '/', principal: 'proxy-operator@pve', role: 'ProxyOperator' },
            { path: '/storage/local', principal: 'proxy-operator@pve', role: 'ProxyOperatorSeeds' },
          ],
        }),
      },
    ));

  it('waits for a node that is down', () =>
    withSteps(async (rig) => {
      addSeed(rig, 'pve2');
      rig.simulator.setNode('pve2', { state: 'dead' });
      const error = expectReason(await rig.refusal(deleteSeed, seed(rig, 'pve2')), 'Unreachable');
      assert.equal(error.errorClass, 'Transient');
    }));

  it('names the privilege that is missing', () =>
    withSteps(
      async (rig) => {
        addSeed(rig, 'pve1');
        const error = expectReason(await rig.refusal(deleteSeed, seed(rig)), 'Forbidden');
        assert.match(error.message, /\/storage\/proxy-seeds, Datastore\.Allocate/);
      },
      {
        fixture: stepFixture({
          acls: [{ path: '/', principal: 'proxy-operator@pve', role: 'ProxyOperator' }],
        }),
      },
    ));
});

describe('listManagedVms', () => {
  it('lists every VM of the UID, for whatever spec, and no other', () =>
    withSteps(async (rig) => {
      const { ref, plan } = rig;
      const nameOf = (uid: string, specHash: string): string =>
        vmNameFor({
          proxyName: 'p1',
          uid,
          installationHex: installationHex(rig.deps.installation.id),
          specHash,
        });
      const older = nameOf(ref.uid, '123456');
      rig.place();
      rig.place({ vmid: 300, node: 'pve2', config: { name: older } });
      rig.place({ vmid: 301, config: { name: 'web-1' } });
      rig.place({ vmid: 302, config: { name: nameOf(ref.uid, '777777'), description: null } });
      rig.place({ vmid: 303, uid: '22222222-2222-4222-8222-222222222222' });
      rig.place({ vmid: 304, config: { name: nameOf(ref.uid, '888888'), template: '1' } });
      const { vms } = await rig.run(listManagedVms, { ref, provider: 'pve' });
      assert.deepEqual(
        vms.toSorted((left, right) => left.vmid - right.vmid),
        [
          { vmid: 300, node: 'pve2', name: older, specHash: plan.specHash },
          { vmid: rig.vmid, node: 'pve1', name: plan.vmName, specHash: plan.specHash },
        ],
      );
    }));

  it('finds a VM that the listing has no name for yet', () =>
    withSteps(async (rig) => {
      rig.place();
      rig.simulator.cluster.stats.delete(rig.vmid);
      const { vms } = await rig.run(listManagedVms, { ref: rig.ref, provider: 'pve' });
      assert.deepEqual(
        vms.map(({ vmid }) => vmid),
        [rig.vmid],
      );
    }));

  it('waits for a clone that may be the one it lost', () =>
    withSteps(async (rig) => {
      const { ref, plan, vmid } = rig;
      const { upid } = await rig.run(cloneTemplate, { ref, plan, vmid, templateNode: 'pve1' });
      await eventually(() => rig.simulator.cluster.vms.has(vmid));
      const listing = { ref, provider: 'pve' };
      expectReason(await rig.refusal(listManagedVms, listing), 'WaitingForLock');
      hurry(rig);
      await rig.finish(upid);
      assert.equal((await rig.run(listManagedVms, listing)).vms.length, 1);
    }, longClones));

  it('is no proof without the right to see VMs', () =>
    withSteps(
      async (rig) => {
        const listing = { ref: rig.ref, provider: 'pve' };
        expectReason(await rig.refusal(listManagedVms, listing), 'ListingIncomplete');
      },
      { fixture: stepFixture({ acls: [] }) },
    ));

  it('is no proof while a VM that may be its own is on a silent node', () =>
    withSteps(async (rig) => {
      rig.place({ node: 'pve2' });
      rig.simulator.setNode('pve2', { state: 'dead' });
      const listing = { ref: rig.ref, provider: 'pve' };
      expectReason(await rig.refusal(listManagedVms, listing), 'Unreachable');
    }));
});
