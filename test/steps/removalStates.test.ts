import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { destroyVm } from '../../activities/destroyVm.ts';
import { stopVm } from '../../activities/stopVm.ts';
import type { Running } from '../simulator/cluster.ts';
import { powerOn } from '../simulator/power.ts';
import { eventually } from '../support/eventually.ts';
import { runRemoval } from '../support/lifeOfSteps.ts';
import { deleting, removing, writes } from '../support/removals.ts';
import { stepFixture } from '../support/stepFixture.ts';
import { expectReason, type StepRig } from '../support/stepHarness.ts';

/** Both steps, in every state in which neither may touch the VM. */
const both = [stopVm, destroyVm];

function expectGone(rig: StepRig): void {
  assert.equal(rig.simulator.cluster.vms.has(rig.vmid), false);
}

describe('a deletion meets its VM', () => {
  const powers: Running['qmpstatus'][] = ['running', 'paused', 'prelaunch', 'io-error'];
  for (const qmpstatus of powers) {
    it(`in QEMU's state ${qmpstatus}: stopped, destroyed`, () =>
      deleting(async (rig) => {
        const vm = rig.place();
        powerOn(rig.simulator.core, vm);
        assert.ok(vm.running);
        vm.running.qmpstatus = qmpstatus;
        await runRemoval(rig);
        expectGone(rig);
        assert.equal(rig.sent('POST', /\/status\/stop$/).length, 1);
      }));
  }

  it('stopped: destroyed without a stop', () =>
    deleting(async (rig) => {
      rig.place();
      await runRemoval(rig);
      expectGone(rig);
      assert.deepEqual(rig.sent('POST', /\/status\//), []);
    }));

  it('hibernated: destroyed without a stop, which the lock would refuse', () =>
    deleting(async (rig) => {
      rig.place({ config: { lock: 'suspended' } });
      await runRemoval(rig);
      expectGone(rig);
      assert.deepEqual(rig.sent('POST', /\/status\//), []);
    }));

  const passing = ['backup', 'migrate', 'rollback', 'snapshot', 'snapshot-delete'];
  for (const lock of passing) {
    it(`locked (${lock}): waited for, then removed`, () =>
      deleting(async (rig) => {
        const vm = rig.place({ config: { lock } });
        for (const step of both) {
          const error = expectReason(await rig.refusal(step, removing(rig)), 'WaitingForLock');
          assert.deepEqual([error.errorClass, error.facts.lock], ['Transient', lock]);
        }
        assert.deepEqual(writes(rig), []);
        vm.config.delete('lock');
        await runRemoval(rig);
        expectGone(rig);
      }));
  }

  for (const lock of ['clone', 'create', 'destroyed', 'suspending']) {
    it(`locked (${lock}) by a task that is dead: left with the line that removes it`, () =>
      deleting(async (rig) => {
        rig.place({ config: { lock } });
        for (const step of both) {
          const error = expectReason(await rig.refusal(step, removing(rig)), 'VmLeftover');
          assert.match(error.message, new RegExp(`on pve1: qm unlock ${rig.vmid} && qm destroy`));
        }
        assert.deepEqual(writes(rig), []);
      }));

    it(`locked (${lock}) by a task that runs: waited for`, () =>
      deleting(async (rig) => {
        rig.place({ config: { lock } });
        const { tasks } = rig.simulator.core;
        const spec = { node: 'pve1', type: 'qmx', id: String(rig.vmid), authId: 'root@pam' };
        tasks.start(spec, (worker) => worker.sleep(5_000));
        for (const step of both) {
          expectReason(await rig.refusal(step, removing(rig)), 'WaitingForLock');
        }
        assert.deepEqual(writes(rig), []);
      }));
  }

  it('without a name, because its clone still runs: waited for', () =>
    deleting(async (rig) => {
      rig.place({ config: { name: null, description: null, scsi0: null, lock: 'clone' } });
      const { tasks } = rig.simulator.core;
      const spec = { node: 'pve1', type: 'qmclone', id: '9001', authId: 'root@pam' };
      tasks.start(spec, (worker) => {
        worker.log(`creating a clone of VM 9001 with ID ${rig.vmid}`);
        return worker.sleep(5_000);
      });
      for (const step of both) {
        expectReason(await rig.refusal(step, removing(rig)), 'WaitingForLock');
      }
      assert.deepEqual(writes(rig), []);
    }));

  it('protected after it was stopped: kept', () =>
    deleting(async (rig) => {
      const vm = rig.place();
      assert.equal((await rig.run(stopVm, removing(rig))).kind, 'stopped');
      vm.config.set('protection', '1');
      expectReason(await rig.refusal(destroyVm, removing(rig)), 'DeletionBlocked');
      assert.deepEqual(writes(rig), []);
    }));

  it('protected in the instant before the destroy: Proxmox refuses, and we say so', () =>
    deleting(async (rig) => {
      const vm = rig.place();
      const action = { kind: 'slow', seconds: 30 } as const;
      rig.simulator.faults.push({ method: 'DELETE', path: /\/qemu\/\d+$/, action });
      const refused = rig.refusal(destroyVm, removing(rig));
      await eventually(() => rig.simulator.faults.rules[0]?.hits === 1);
      vm.config.set('protection', '1');
      const error = expectReason(await refused, 'DeletionBlocked');
      assert.match(error.message, /qm set .*--protection 0/);
      assert.equal(rig.simulator.cluster.vms.get(rig.vmid), vm);
      vm.config.delete('protection');
      await runRemoval(rig);
      expectGone(rig);
    }));

  it('on a node that does not answer: waited for, and removed when the node is back', () =>
    deleting(async (rig) => {
      rig.place({ node: 'pve2' });
      rig.simulator.setNode('pve2', { state: 'dead' });
      for (const step of both) {
        const error = expectReason(await rig.refusal(step, removing(rig)), 'Unreachable');
        assert.equal(error.errorClass, 'Transient');
      }
      assert.deepEqual(writes(rig), []);
      rig.simulator.setNode('pve2', { state: 'up' });
      await eventually(async () => {
        const result = await rig.run(destroyVm, removing(rig)).catch(() => null);
        return result?.kind === 'gone';
      });
      expectGone(rig);
    }));

  it('gone with its node, which the cluster knows no more: over, the seed too', () =>
    deleting(async (rig) => {
      rig.simulator.setNode('pve2', { state: 'absent' });
      await eventually(async () => {
        const result = await rig.run(destroyVm, removing(rig, { vm: rig.vmRef({ node: 'pve2' }) }));
        assert.equal(result.kind, 'gone');
        await runRemoval(rig, rig.plan, 'pve2');
        return true;
      });
      assert.deepEqual(writes(rig), []);
    }));

  it('never made: over, and nothing is changed', () =>
    deleting(async (rig) => {
      await runRemoval(rig);
      assert.deepEqual(writes(rig), []);
    }));

  for (const vmid of [-1, 0, 99, Number.NaN]) {
    it(`under the impossible VMID ${vmid}: over, and Proxmox is asked for nothing`, () =>
      deleting(async (rig) => {
        const input = removing(rig, { vm: rig.vmRef({ vmid }) });
        for (const step of both) assert.deepEqual(await rig.run(step, input), { kind: 'gone' });
        assert.deepEqual(rig.simulator.requests, []);
      }));
  }
});

describe('a deletion lacks something', () => {
  it('the token file: waits, names the file, and asks nothing meanwhile', () =>
    deleting(async (rig) => {
      rig.place();
      rig.configure({ tokenFile: '/nowhere/token' });
      for (const step of both) {
        const error = expectReason(
          await rig.refusal(step, removing(rig)),
          'CredentialsUnavailable',
        );
        assert.equal(error.errorClass, 'Transient');
        assert.match(error.message, /\/nowhere\/token/);
      }
      assert.deepEqual(rig.simulator.requests, []);
      rig.configure({});
      await runRemoval(rig);
      expectGone(rig);
    }));

  const privileges: [string, typeof stopVm | typeof destroyVm][] = [
    ['VM.PowerMgmt', stopVm],
    ['VM.Allocate', destroyVm],
  ];
  for (const [privilege, step] of privileges) {
    it(`${privilege}: is Forbidden, names it, and keeps the VM`, () =>
      deleting(
        async (rig) => {
          const vm = rig.place();
          if (step === stopVm) powerOn(rig.simulator.core, vm);
          const error = expectReason(await rig.refusal(step, removing(rig)), 'Forbidden');
          assert.deepEqual([error.errorClass, error.facts.scope], ['Permanent', 'provider']);
          assert.ok(error.message.includes(`/vms/${rig.vmid}, ${privilege}`), error.message);
          assert.equal(rig.simulator.cluster.vms.get(rig.vmid), vm);
        },
        { fixture: withPrivilegesOf(privilege) },
      ));
  }
});

/** The operator's role without one privilege. */
function withPrivilegesOf(missing: string): ReturnType<typeof stepFixture> {
  const { roles = [], ...fixture } = stepFixture();
  return {
    ...fixture,
    roles: roles.map(({ id, privileges }) => ({
      id,
      privileges: privileges.filter((name) => name !== missing),
    })),
  };
}
