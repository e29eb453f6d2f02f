import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { awaitTask } from '../../activities/awaitTask.ts';
import { destroyVm } from '../../activities/destroyVm.ts';
import { stopVm } from '../../activities/stopVm.ts';
import { newHaResource } from '../simulator/endpoints/ha.ts';
import { powerOn } from '../simulator/power.ts';
import { eventually } from '../support/eventually.ts';
import { deleting, ended, removing, writes } from '../support/removals.ts';
import { expectReason, seedOf } from '../support/stepHarness.ts';

describe('stopVm and destroyVm in the way of locks, protection, slots and moves', () => {
  it('destroy a hibernated VM directly', () =>
    deleting(async (rig) => {
      rig.place({ config: { lock: 'suspended' } });
      assert.equal((await rig.run(stopVm, removing(rig))).kind, 'stopped');
      const result = await rig.run(destroyVm, removing(rig));
      if (result.kind === 'task') await ended(rig, result.upid, 'destroy');
      assert.deepEqual(await rig.run(destroyVm, removing(rig)), { kind: 'gone' });
    }));

  it('wait for a backup', () =>
    deleting(async (rig) => {
      rig.place({ config: { lock: 'backup' } });
      for (const step of [stopVm, destroyVm]) {
        const error = expectReason(await rig.refusal(step, removing(rig)), 'WaitingForLock');
        assert.equal(error.facts.lock, 'backup');
      }
    }));

  it('name the line that removes what a dead destroy left', () =>
    deleting(async (rig) => {
      rig.place({ config: { name: null, description: null, scsi0: null, lock: 'destroyed' } });
      const error = expectReason(await rig.refusal(destroyVm, removing(rig)), 'VmLeftover');
      assert.match(error.message, new RegExp(`qm unlock ${rig.vmid} && qm destroy ${rig.vmid}`));
    }));

  it('tell of a protection before anything is stopped', () =>
    deleting(async (rig) => {
      powerOn(rig.simulator.core, rig.place({ config: { protection: '1' } }));
      const error = expectReason(await rig.refusal(stopVm, removing(rig)), 'DeletionBlocked');
      assert.match(error.message, new RegExp(`qm set ${rig.vmid} --protection 0`));
      assert.deepEqual(writes(rig), []);
    }));

  it('clear a protection that came from the template, unless our seed was ever attached', () =>
    deleting(async (rig) => {
      const vm = rig.place({ config: { protection: '1' } });
      const inherited = removing(rig, { protectionInherited: true });
      vm.config.set('ide2', `proxy-seeds:iso/${seedOf(rig.plan)},media=cdrom`);
      expectReason(await rig.refusal(stopVm, inherited), 'DeletionBlocked');
      vm.config.delete('ide2');
      assert.equal((await rig.run(stopVm, inherited)).kind, 'stopped');
      assert.equal(vm.config.has('protection'), false);
      assert.equal((await rig.run(destroyVm, inherited)).kind, 'task');
    }));

  it('keep to the slots of the provider when many ask at once', () =>
    deleting(async (rig) => {
      const inputs = Array.from({ length: 6 }, (_, index) => {
        rig.place({ vmid: 100_500 + index });
        return removing(rig, { vm: rig.vmRef({ vmid: 100_500 + index }) });
      });
      const action = { kind: 'task', delaySeconds: 5_000 } as const;
      rig.simulator.faults.push({ method: 'DELETE', path: /\/qemu\/\d+$/, times: 6, action });
      const asked = await Promise.allSettled(inputs.map((one) => rig.run(destroyVm, one)));
      assert.equal(asked.filter(({ status }) => status === 'fulfilled').length, 2);
      const last = removing(rig, { vm: rig.vmRef({ vmid: 100_505 }) });
      const error = expectReason(await rig.refusal(destroyVm, last), 'WaitingForSlot');
      assert.match(error.message, /2 of 2 slots taken/);
    }));

  it('do not destroy while a stop still holds the VM (cases.md 3)', () =>
    deleting(async (rig) => {
      rig.place();
      const { tasks } = rig.simulator.core;
      const spec = { node: 'pve1', type: 'qmstop', id: String(rig.vmid), authId: 'root@pam' };
      const upid = tasks.start(spec, (worker) => worker.sleep(5_000));
      const error = expectReason(await rig.refusal(destroyVm, removing(rig)), 'WaitingForLock');
      assert.equal(error.facts.upid, upid);
      assert.deepEqual(writes(rig), []);
      const stop = tasks.find(upid);
      assert.ok(stop);
      await tasks.stop(stop);
      assert.equal((await rig.run(destroyVm, removing(rig))).kind, 'task');
    }));

  it('go on after a destroy that failed on the lock: the VM is there and is destroyed again (cases.md 3)', () =>
    deleting(async (rig) => {
      rig.place();
      const fail = `can't lock file '/var/lock/qemu-server/lock-${rig.vmid}.conf' - got timeout`;
      const action = { kind: 'task', fail } as const;
      rig.simulator.faults.push({ method: 'DELETE', path: /\/qemu\/\d+$/, action });
      const first = await rig.run(destroyVm, removing(rig));
      assert.equal(first.kind, 'task');
      const upid = first.kind === 'task' ? first.upid : '';
      const waiting = { provider: 'pve', upid, kind: 'destroy', vmid: rig.vmid } as const;
      expectReason(await rig.refusal(awaitTask, waiting), 'WaitingForLock');
      const second = await rig.run(destroyVm, removing(rig));
      assert.equal(second.kind, 'task');
      if (second.kind === 'task') await ended(rig, second.upid, 'destroy');
      assert.deepEqual(await rig.run(destroyVm, removing(rig)), { kind: 'gone' });
    }));

  it('send a VM that was started again back to the stop (cases.md 3 b)', () =>
    deleting(async (rig) => {
      powerOn(rig.simulator.core, rig.place());
      const error = expectReason(await rig.refusal(destroyVm, removing(rig)), 'VmRunning');
      assert.deepEqual([error.errorClass, error.facts.goBack], ['Transient', true]);
      assert.deepEqual(writes(rig), []);
    }));

  it('wait for the real end of an HA-managed VM, whose stop task only asks', () =>
    deleting(async (rig) => {
      const vm = rig.place();
      rig.simulator.cluster.ha.resources.set(vm.vmid, newHaResource(vm.vmid, 'started'));
      powerOn(rig.simulator.core, vm);
      await eventually(async () => {
        const result = await rig.run(stopVm, removing(rig));
        if (result.kind === 'task') await ended(rig, result.upid, 'stop');
        return result.kind === 'stopped';
      });
      assert.equal(vm.running, null);
      assert.equal((await rig.run(destroyVm, removing(rig))).kind, 'task');
    }));

  it('follow a VM to the node it moved to', () =>
    deleting(async (rig) => {
      rig.place({ node: 'pve2' });
      const result = await rig.run(destroyVm, removing(rig));
      assert.deepEqual([result.kind, 'node' in result && result.node], ['task', 'pve2']);
    }));
});
