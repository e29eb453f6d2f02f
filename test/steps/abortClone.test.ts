/** `abortClones`: stopVm ends the clone that makes the VM, where it is provably the operator's own. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { awaitTask } from '../../activities/awaitTask.ts';
import { cloneTemplate } from '../../activities/cloneTemplate.ts';
import { stopVm } from '../../activities/stopVm.ts';
import { eventually } from '../support/eventually.ts';
import { aProxy } from '../support/memoryRecords.ts';
import { deleting, removing } from '../support/removals.ts';
import { expectReason, hurry, longClones, type StepRig } from '../support/stepHarness.ts';

async function cloning(rig: StepRig): Promise<string> {
  rig.configure({ abortClones: true });
  const input = { ref: rig.ref, plan: rig.plan, vmid: rig.vmid, templateNode: 'pve1' };
  const { upid, own } = await rig.run(cloneTemplate, input);
  assert.equal(own, true);
  await eventually(() => rig.simulator.cluster.vms.has(rig.vmid));
  return upid ?? '';
}

function aborts(rig: StepRig): number {
  return rig.sent('DELETE', /\/tasks\//).length;
}

describe('abortClones', () => {
  it('ends the task, which takes VM and disks along, and calls the VM gone afterwards', () =>
    deleting(async (rig) => {
      const upid = await cloning(rig);
      const input = removing(rig, { ownClone: upid });
      assert.deepEqual(await rig.run(stopVm, input), { kind: 'aborted' });
      hurry(rig);
      const waiting = { provider: 'pve', upid, kind: 'clone', vmid: rig.vmid } as const;
      const error = expectReason(await rig.refusal(awaitTask, waiting), 'TaskFailed');
      assert.equal(error.facts.taskEnded, true);
      assert.deepEqual(await rig.run(stopVm, input), { kind: 'gone' });
      assert.equal(aborts(rig), 1);
      assert.equal(rig.simulator.cluster.vms.has(rig.vmid), false);
    }, longClones));

  it('takes a worker that died hard for a leftover that only root can clear', () =>
    deleting(async (rig) => {
      const upid = await cloning(rig);
      rig.simulator.killTask(upid);
      const error = await rig.refusal(stopVm, removing(rig, { ownClone: upid }));
      expectReason(error, 'VmLeftover');
      assert.match(error.message, /qm unlock \d+ && qm destroy \d+ --purge/);
      assert.equal(aborts(rig), 0);
    }, longClones));

  it('ends nothing where the provider does not say so', () =>
    deleting(async (rig) => {
      const upid = await cloning(rig);
      rig.configure({ abortClones: false });
      expectReason(await rig.refusal(stopVm, removing(rig, { ownClone: upid })), 'WaitingForLock');
      assert.equal(aborts(rig), 0);
    }, longClones));

  it('ends no clone whose UPID did not answer our own request', () =>
    deleting(async (rig) => {
      await cloning(rig);
      expectReason(await rig.refusal(stopVm, removing(rig)), 'WaitingForLock');
      assert.equal(aborts(rig), 0);
    }, longClones));

  it('ends no task of another token', () =>
    deleting(async (rig) => {
      rig.configure({ abortClones: true });
      const spec = { node: 'pve1', type: 'qmclone', id: '9001', authId: 'other@pve!other' };
      const upid = rig.simulator.core.tasks.start(spec, (worker) => worker.sleep(1_000));
      assert.deepEqual(await rig.run(stopVm, removing(rig, { ownClone: upid })), { kind: 'gone' });
      assert.equal(aborts(rig), 0);
    }));

  it('asks Kubernetes once more: a VM that is still wanted goes on being cloned', () =>
    deleting(async (rig) => {
      const upid = await cloning(rig);
      const input = removing(rig, { ownClone: upid, purpose: 'replacement' });
      rig.records.put(aProxy({ metadata: { ...rig.ref } }));
      expectReason(await rig.refusal(stopVm, input), 'StillWanted');
      assert.equal(aborts(rig), 0);
    }, longClones));

  it('has nothing to end when the clone has ended or nobody knows it any more', () =>
    deleting(async (rig) => {
      const upid = await cloning(rig);
      hurry(rig);
      await rig.finish(upid);
      const input = removing(rig, { ownClone: upid });
      assert.deepEqual(await rig.run(stopVm, input), { kind: 'stopped', node: 'pve1' });
      const task = rig.simulator.core.tasks.find(upid);
      assert.ok(task);
      task.vanished = true;
      assert.deepEqual(await rig.run(stopVm, input), { kind: 'stopped', node: 'pve1' });
      assert.equal(aborts(rig), 0);
    }, longClones));
});
