import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { destroyVm } from '../../activities/destroyVm.ts';
import type { Providers } from '../../activities/deps.ts';
import { stopVm } from '../../activities/stopVm.ts';
import type { Reason } from '../../workflows/contract/errors.ts';
import type { DestroyPurpose } from '../../workflows/contract/removalSteps.ts';
import { powerOn } from '../simulator/power.ts';
import { aProxy } from '../support/memoryRecords.ts';
import { deleting, ended, removing, writes } from '../support/removals.ts';
import { stepFixture } from '../support/stepFixture.ts';
import { expectReason, withSteps, type PlacedVm, type StepRig } from '../support/stepHarness.ts';

const otherUid = '22222222-2222-4222-8222-222222222222';

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

  for (const there of [false, true]) {
    it(`call nothing gone in a cluster without a known node${there ? ', where another VM has the VMID' : ''}`, () =>
      deleting(async (rig) => {
        if (there) rig.place({ config: { name: 'web-1' } });
        rig.configure({ nodes: ['lost1', 'lost2'] });
        const elsewhere = removing(rig, { vm: rig.vmRef({ node: 'lost3' }) });
        for (const step of [stopVm, destroyVm]) {
          const error = expectReason(await rig.refusal(step, elsewhere), 'ListingIncomplete');
          assert.match(error.message, /none of the known nodes \(lost3, lost1, lost2\)/);
        }
        // Its node may have left the cluster: one that is configured will do.
        rig.configure({ nodes: ['pve1', 'lost2'] });
        assert.deepEqual(await rig.run(stopVm, elsewhere), { kind: 'gone' });
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
