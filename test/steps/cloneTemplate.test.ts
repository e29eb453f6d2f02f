import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { awaitTask } from '../../activities/awaitTask.ts';
import { cloneTemplate } from '../../activities/cloneTemplate.ts';
import { parseMark } from '../../activities/vm/identity.ts';
import type { CloneTemplateInput } from '../../workflows/contract/steps.ts';
import { eventually } from '../support/eventually.ts';
import {
  expectReason,
  hurry,
  longClones,
  withSteps,
  type StepRig,
} from '../support/stepHarness.ts';

function cloning({ ref, plan, vmid }: StepRig, plus = 0): CloneTemplateInput {
  return { ref, plan, vmid: vmid + plus, templateNode: 'pve1' };
}

function successfulClones(rig: StepRig): number {
  return rig.simulator.tasks.filter((task) => task.type === 'qmclone' && task.exitstatus === 'OK')
    .length;
}

describe('cloneTemplate', () => {
  it('makes a full clone that is marked from the start', () =>
    withSteps(async (rig) => {
      const { upid } = await rig.run(cloneTemplate, cloning(rig));
      await rig.finish(upid);
      const config = rig.simulator.cluster.vms.get(rig.vmid)?.config;
      assert.equal(config?.get('name'), rig.plan.vmName);
      assert.match(config?.get('scsi0') ?? '', /^local:100\d+\/vm-100\d+-disk-0\.qcow2/);
      const mark = parseMark(config?.get('description') ?? '');
      assert.match(mark?.createdAt ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      assert.deepEqual(mark && { ...mark, createdAt: null }, {
        managed: 'true',
        uid: rig.ref.uid,
        createdAt: null,
        installation: rig.deps.installation.id,
        proxy: 'egress/p1',
        spec: rig.plan.specHash,
        deletionPolicy: 'Delete',
      });
    }));

  it('sent again while the clone runs gives the same task and makes one VM', () =>
    withSteps(async (rig) => {
      const first = await rig.run(cloneTemplate, cloning(rig));
      await eventually(() => rig.simulator.cluster.vms.has(rig.vmid));
      assert.deepEqual(await rig.run(cloneTemplate, cloning(rig)), { ...first, own: false });
      hurry(rig);
      await rig.finish(first.upid);
      assert.equal(successfulClones(rig), 1);
    }, longClones));

  it('takes no VMID that somebody else has', () =>
    withSteps(async (rig) => {
      rig.place({ config: { name: 'web-1', description: null } });
      const error = expectReason(await rig.refusal(cloneTemplate, cloning(rig)), 'LostRace');
      assert.equal(error.facts.goBack, true);
      assert.equal(rig.sent('POST', /\/clone$/).length, 0);
    }));

  it('keeps to the slots of the provider when many ask at once (cases.md 5)', () =>
    withSteps(async (rig) => {
      const inputs = Array.from({ length: 8 }, (_, index) => cloning(rig, index));
      const asked = await Promise.allSettled(inputs.map((one) => rig.run(cloneTemplate, one)));
      assert.equal(asked.filter(({ status }) => status === 'fulfilled').length, 2);
      const error = expectReason(
        await rig.refusal(cloneTemplate, cloning(rig, 9)),
        'WaitingForSlot',
      );
      assert.match(error.message, /not yet, 2 of 2 slots taken/);
      assert.equal(error.errorClass, 'Transient');
      assert.ok((error.facts.retryAfterMs ?? 0) > 0);
      assert.equal(rig.sent('POST', /\/clone$/).length, 2);
    }, longClones));

  it("does not count other people's clones", () =>
    withSteps(async (rig) => {
      const { tasks } = rig.simulator.core;
      for (let index = 0; index < 3; index += 1) {
        const spec = { node: 'pve1', type: 'qmclone', id: '9001', authId: 'other@pve!other' };
        tasks.start(spec, (worker) => worker.sleep(60));
      }
      await rig.finish((await rig.run(cloneTemplate, cloning(rig))).upid);
      assert.equal(successfulClones(rig), 1);
    }));

  it('asks for another node only where the template is not on it', () =>
    withSteps(async (rig) => {
      const plan = { ...rig.plan, node: 'pve2', templateVmid: 9002 };
      await rig.finish((await rig.run(cloneTemplate, { ...cloning(rig), plan })).upid);
      assert.equal(rig.simulator.cluster.vms.get(rig.vmid)?.node, 'pve2');
      const [request] = rig.sent('POST', /\/clone$/);
      assert.equal(request?.params['target'], 'pve2');
      await rig.finish((await rig.run(cloneTemplate, cloning(rig, 1))).upid);
      assert.equal(rig.sent('POST', /\/clone$/)[1]?.params['target'], undefined);
    }));

  it('sends no clone to a node that is down, where it would end OK and be out of reach', () =>
    withSteps(async (rig) => {
      rig.simulator.setNode('pve2', { state: 'dead' });
      await eventually(() => !isOnline(rig, 'pve2'));
      const plan = { ...rig.plan, node: 'pve2', templateVmid: 9002 };
      const error = await rig.refusal(cloneTemplate, { ...cloning(rig), plan });
      expectReason(error, 'Unreachable');
      assert.equal(rig.sent('POST', /\/clone$/).length, 0);
    }));

  const ends: [text: string, reason: 'LostRace' | 'WaitingForLock' | 'TaskFailed'][] = [
    [
      "clone failed: can't lock file '/var/lock/pve-manager/pve-storage-local' - got timeout",
      'WaitingForLock',
    ],
    ["clone failed: cfs-lock 'storage-local' error: got lock request timeout", 'WaitingForLock'],
    ['unable to create VM 100013: config file already exists', 'LostRace'],
    ['clone failed: something nobody has seen', 'TaskFailed'],
  ];
  for (const [fail, reason] of ends) {
    it(`goes back to a fresh look when its task ends with «${fail}»`, () =>
      withSteps(async (rig) => {
        const action = { kind: 'task', fail } as const;
        rig.simulator.faults.push({ method: 'POST', path: /\/clone$/, action });
        const { upid } = await rig.run(cloneTemplate, cloning(rig));
        const waiting = {
          provider: 'pve',
          upid: upid ?? '',
          kind: 'clone',
          vmid: rig.vmid,
        } as const;
        const error = expectReason(await rig.refusal(awaitTask, waiting), reason);
        assert.deepEqual([error.errorClass, error.facts.goBack], ['Transient', true]);
      }));
  }

  it('says that the outcome is unknown when the answer does not come', () =>
    withSteps(async (rig) => {
      const action = { kind: 'reset', when: 'after' } as const;
      rig.simulator.faults.push({ method: 'POST', path: /\/clone$/, action });
      const error = await rig.refusal(cloneTemplate, cloning(rig));
      assert.equal(error.facts.outcomeUnknown, true);
      await eventually(() => successfulClones(rig) === 1);
      assert.deepEqual(await rig.run(cloneTemplate, cloning(rig)), { upid: null, own: false });
      assert.equal(successfulClones(rig), 1);
    }));
});

function isOnline({ simulator }: StepRig, node: string): boolean {
  const state = simulator.cluster.nodes.get(node);
  return state === undefined || simulator.core.clock.since(state.changedAt) < 7;
}
