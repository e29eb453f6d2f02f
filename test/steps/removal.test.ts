import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { awaitTask } from '../../activities/awaitTask.ts';
import { destroyVm } from '../../activities/destroyVm.ts';
import type { Providers } from '../../activities/deps.ts';
import { stopVm } from '../../activities/stopVm.ts';
import type { Reason } from '../../workflows/contract/errors.ts';
import type { DestroyPurpose, StopVmInput } from '../../workflows/contract/steps.ts';
import { newHaResource } from '../simulator/endpoints/ha.ts';
import { powerOn } from '../simulator/power.ts';
import { eventually } from '../support/eventually.ts';
import { aProxy } from '../support/memoryRecords.ts';
import { stepFixture } from '../support/stepFixture.ts';
import {
  expectReason,
  seedOf,
  withSteps,
  type PlacedVm,
  type StepRig,
} from '../support/stepHarness.ts';

const otherUid = '22222222-2222-4222-8222-222222222222';

function removing(rig: StepRig, fields: Partial<StopVmInput> = {}): StopVmInput {
  return {
    ref: rig.ref,
    vm: rig.vmRef(),
    purpose: 'deletion',
    specHash: rig.plan.specHash,
    protectionInherited: false,
    ...fields,
  };
}

/** A rig whose Proxy is being deleted. */
function deleting(
  body: (rig: StepRig) => Promise<void>,
  options: Parameters<typeof withSteps>[1] = {},
): Promise<void> {
  return withSteps(async (rig) => {
    rig.records.markDeleting(rig.ref);
    await body(rig);
  }, options);
}

/** Requests that could have changed something on Proxmox. */
function writes(rig: StepRig): string[] {
  return rig.simulator.requests
    .filter(({ method }) => method !== 'GET')
    .map(({ method, path }) => `${method} ${path}`);
}

function ended(rig: StepRig, upid: string, kind: 'stop' | 'destroy'): Promise<unknown> {
  return rig.run(awaitTask, { provider: 'pve', upid, kind, vmid: rig.vmid });
}

describe('stopVm and destroyVm', () => {
  it('take a running VM away, and every step may run twice', () =>
    deleting(async (rig) => {
      powerOn(rig.simulator.core, rig.place());
      const stopping = await rig.run(stopVm, removing(rig));
      assert.equal(stopping.kind, 'task');
      if (stopping.kind === 'task') await ended(rig, stopping.upid, 'stop');
      assert.deepEqual(await rig.run(stopVm, removing(rig)), { kind: 'stopped', node: 'pve1' });
      const destroying = await rig.run(destroyVm, removing(rig));
      assert.equal(destroying.kind, 'task');
      if (destroying.kind === 'task') await ended(rig, destroying.upid, 'destroy');
      assert.deepEqual(await rig.run(destroyVm, removing(rig)), { kind: 'gone' });
      assert.deepEqual(await rig.run(stopVm, removing(rig)), { kind: 'gone' });
      assert.equal(rig.simulator.cluster.vms.has(rig.vmid), false);
      const [destroy, ...more] = rig.sent('DELETE', /\/qemu\/\d+$/);
      assert.deepEqual(more, []);
      assert.equal(destroy?.params['purge'], '1');
      assert.equal(destroy?.params['destroy-unreferenced-disks'], '1');
    }));

  // cases.md 1: the VMID belongs to somebody else by now.
  const strangers: [title: string, vm: PlacedVm | null][] = [
    ["another Proxy's VM", { uid: otherUid, config: { name: 'proxy-bbb' } }],
    ["somebody's VM that inherited our mark", { config: { name: 'web-1' } }],
    ['a VM of our name without a mark', { config: { description: null } }],
    ['a container', { type: 'lxc', config: { hostname: 'ct7', name: null, scsi0: null } }],
    ['a template', { config: { template: '1' } }],
    ['a bare placeholder', { config: { name: null, description: null } }],
    ['nothing', null],
  ];
  for (const [title, vm] of strangers) {
    it(`leave ${title} at the VMID alone and call ours gone`, () =>
      deleting(async (rig) => {
        if (vm !== null) rig.place(vm);
        assert.deepEqual(await rig.run(stopVm, removing(rig)), { kind: 'gone' });
        assert.deepEqual(await rig.run(destroyVm, removing(rig)), { kind: 'gone' });
        assert.deepEqual(writes(rig), []);
      }));
  }

  it('leave a retained VM alone', () =>
    deleting(async (rig) => {
      const vm = rig.place();
      const description = vm.config.get('description') ?? '';
      vm.config.set('description', description.replace('managed=true', 'managed=retained'));
      assert.deepEqual(await rig.run(destroyVm, removing(rig)), { kind: 'gone' });
      assert.deepEqual(writes(rig), []);
    }));

  it('report a VM of our name with another UID, naming both, and do nothing to it', () =>
    deleting(async (rig) => {
      powerOn(rig.simulator.core, rig.place({ uid: otherUid }));
      for (const step of [stopVm, destroyVm]) {
        const error = expectReason(await rig.refusal(step, removing(rig)), 'OwnershipConflict');
        assert.equal(error.errorClass, 'Permanent');
        for (const uid of [otherUid, rig.ref.uid]) assert.ok(error.message.includes(uid), uid);
      }
      assert.deepEqual(writes(rig), []);
    }));

  for (const step of [stopVm, destroyVm]) {
    it(`notice a swap between their first look and their request: ${step.name}`, () =>
      deleting(async (rig) => {
        const vm = rig.place();
        if (step === stopVm) powerOn(rig.simulator.core, vm);
        rig.deps.providers = afterFirstConfigRead(rig.deps.providers, () => {
          vm.config.set('name', 'proxy-bbb');
        });
        await rig.refusal(step, removing(rig)).catch(() => undefined);
        assert.deepEqual(writes(rig), []);
        assert.equal(rig.simulator.cluster.vms.get(rig.vmid), vm);
      }));

    it(`send nothing when the identity they read is old: ${step.name}`, () =>
      deleting(async (rig) => {
        const vm = rig.place();
        if (step === stopVm) powerOn(rig.simulator.core, vm);
        // As if the read had been six seconds ago.
        rig.deps.clock = { ...rig.deps.clock, now: () => Date.now() - 6_000 };
        const error = expectReason(await rig.refusal(step, removing(rig)), 'Timeout');
        assert.match(error.message, /nothing was sent/);
        assert.deepEqual(writes(rig), []);
      }));
  }

  it('call nothing gone on a listing without the right to see the VM', () =>
    deleting(
      async (rig) => {
        expectReason(await rig.refusal(destroyVm, removing(rig)), 'ListingIncomplete');
        expectReason(await rig.refusal(stopVm, removing(rig)), 'ListingIncomplete');
      },
      { fixture: stepFixture({ acls: [] }) },
    ));

  const purposes: [
    title: string,
    purpose: DestroyPurpose,
    prepare: (rig: StepRig) => void,
    reason: Reason,
  ][] = [
    ['an object that is not being deleted', 'deletion', () => undefined, 'StillWanted'],
    ['a wanted spec that names this VM again', 'replacement', () => undefined, 'StillWanted'],
    [
      'an object that vanished',
      'replacement',
      ({ records, ref }) => records.remove(ref),
      'ObjectMissing',
    ],
    ['an orphan whose Proxy exists', 'orphan', () => undefined, 'StillWanted'],
  ];
  for (const [title, purpose, prepare, reason] of purposes) {
    it(`keep the VM: ${purpose} of ${title}`, () =>
      withSteps(async (rig) => {
        rig.place();
        prepare(rig);
        for (const step of [stopVm, destroyVm]) {
          expectReason(await rig.refusal(step, removing(rig, { purpose })), reason);
        }
        assert.deepEqual(writes(rig), []);
      }));
  }

  const granted: [title: string, purpose: DestroyPurpose, prepare: (rig: StepRig) => void][] = [
    [
      'a replaced VM',
      'replacement',
      ({ records }) => records.put(aProxy({ spec: { cloudInit: '#cloud-config\n# new\n' } })),
    ],
    [
      'a replaced VM of a Proxy under deletion',
      'replacement',
      ({ records, ref }) => records.markDeleting(ref),
    ],
    ['an incomplete VM', 'incomplete', () => undefined],
    [
      'a VM whose object went in mid-deletion, its finalizer taken off by hand',
      'deletion',
      ({ records, ref }) => records.remove(ref),
    ],
    ['an orphan', 'orphan', ({ records, ref }) => records.remove(ref)],
  ];
  for (const [title, purpose, prepare] of granted) {
    it(`destroy ${title}`, () =>
      withSteps(async (rig) => {
        rig.place();
        prepare(rig);
        const result = await rig.run(destroyVm, removing(rig, { purpose }));
        assert.equal(result.kind, 'task');
      }));
  }

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

/** `Providers` that run `swap` right after the first config any API of them has read. */
function afterFirstConfigRead(providers: Providers, swap: () => void): Providers {
  let done = false;
  return {
    ...providers,
    api: (name, call) => {
      const api = providers.api(name, call);
      return {
        ...api,
        getVmConfig: async (node, vmid) => {
          const config = await api.getVmConfig(node, vmid);
          if (!done) swap();
          done = true;
          return config;
        },
      };
    },
  };
}
