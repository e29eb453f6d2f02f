import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { allocateVmid } from '../../activities/allocateVmid.ts';
import { configureVm } from '../../activities/configureVm.ts';
import { pollAgent } from '../../activities/pollAgent.ts';
import { startVm } from '../../activities/startVm.ts';
import { stopVm } from '../../activities/stopVm.ts';
import type { AllocateVmidInput, MendVmInput } from '../../workflows/contract/steps.ts';
import type { Vm } from '../simulator/cluster.ts';
import { powerOn } from '../simulator/power.ts';
import { aWatchedProxy } from '../support/aWatchedProxy.ts';
import { stepFixture } from '../support/stepFixture.ts';
import { expectReason, seedOf, withSteps, type StepRig } from '../support/stepHarness.ts';

const seedOn = (rig: StepRig): Record<string, string> => ({
  ide2: `proxy-seeds:iso/${seedOf(rig.plan)},media=cdrom`,
});

function looking(rig: StepRig): AllocateVmidInput {
  return {
    ref: rig.ref,
    plan: { ...rig.plan, vmidMin: rig.vmid, vmidMax: rig.vmid },
    recordedVmids: [rig.vmid],
    avoidVmids: [],
    ownFreedVmids: [],
    recordedDiskKeys: {},
    existingOnly: true,
  };
}

function runs(rig: StepRig, vm: Vm): NonNullable<Vm['running']> {
  powerOn(rig.simulator.core, vm);
  assert.ok(vm.running);
  return vm.running;
}

describe('a fresh look at a VM that served', () => {
  it('tells where it is and that it lacks nothing', () =>
    withSteps(async (rig) => {
      runs(
        rig,
        rig.place({ node: 'pve2', config: { ...seedOn(rig), tags: 'proxy_operator;web' } }),
      );
      assert.deepEqual(await rig.run(allocateVmid, looking(rig)), {
        kind: 'existing',
        vmid: rig.vmid,
        node: 'pve2',
        power: 'running',
        ioError: false,
        lock: null,
        tagged: true,
        agentEnabled: true,
        seed: 'listed',
        isoStorage: 'proxy-seeds',
      });
    }));

  it('tells that it is stopped, without tag and agent, and that its seed is lost', () =>
    withSteps(async (rig) => {
      rig.place({ config: { ...seedOn(rig), agent: '0', tags: 'web' } });
      const found = await rig.run(allocateVmid, looking(rig));
      assert.ok(found.kind === 'existing');
      assert.deepEqual(
        [found.power, found.tagged, found.agentEnabled, found.seed],
        ['stopped', false, false, 'missing'],
      );
    }));

  it('asks for neither plan nor template, so that a changed catalogue is no hindrance', () =>
    withSteps(async (rig) => {
      rig.simulator.cluster.vms.delete(rig.plan.templateVmid);
      rig.place();
      const found = await rig.run(allocateVmid, looking(rig));
      assert.equal(found.kind, 'existing');
      assert.equal(rig.sent('GET', /qemu\/900\d\/config/).length, 0);
    }));

  it('finds it gone when another VM has its VMID', () =>
    withSteps(async (rig) => {
      rig.place({ config: { name: 'web-1' } });
      assert.deepEqual(await rig.run(allocateVmid, looking(rig)), { kind: 'gone', vmid: rig.vmid });
    }));

  it('finds it gone although a VMID that was given up has its name', () =>
    withSteps(async (rig) => {
      rig.place({ config: { lock: 'suspending' } });
      const input = { ...looking(rig), recordedVmids: [rig.vmid + 1], avoidVmids: [rig.vmid] };
      assert.equal((await rig.run(allocateVmid, input)).kind, 'gone');
    }));

  it('does not take it for gone without the right to see all VMs', () =>
    withSteps(
      async (rig) => {
        expectReason(await rig.refusal(allocateVmid, looking(rig)), 'ListingIncomplete');
      },
      { fixture: stepFixture({ acls: [] }) },
    ));

  const principal = 'proxy-operator@pve';
  const hidden = [
    ['by an ACL of its own', { path: '/', role: 'ProxyOperator' }, { path: '/vms/VMID', role: 'NoAccess' }],
    ['as the right on /vms does not propagate', { path: '/vms', role: 'ProxyOperator', propagate: false }],
  ] as const; // prettier-ignore
  for (const [title, ...acls] of hidden) {
    it(`takes a VM neither for gone nor its VMID for vacant when it is hidden ${title}`, () =>
      withSteps(async ({ vmid }) => {
        const placed = acls.map((acl) => ({
          propagate: true,
          ...acl,
          principal,
          path: acl.path.replace('VMID', String(vmid)),
        }));
        await withSteps(
          async (rig) => {
            rig.place();
            const { existingOnly: _, ...choosing } = looking(rig);
            for (const input of [looking(rig), choosing]) {
              expectReason(await rig.refusal(allocateVmid, input), 'ListingIncomplete');
            }
          },
          { fixture: stepFixture({ acls: placed }) },
        );
      }));
  }

  it('takes a backup under another VMID for the VM only where that is not hidden by an ACL of its own', () =>
    withSteps(async ({ vmid }) => {
      const acls = [
        { path: '/', role: 'ProxyOperator', principal, propagate: true },
        { path: `/vms/${vmid}`, role: 'NoAccess', principal, propagate: true },
      ];
      const restored = { vmid: 150_001, node: 'pve2' };
      await withSteps(
        async (rig) => {
          rig.place();
          rig.place(restored);
          const { existingOnly: _, ...choosing } = looking(rig);
          for (const input of [looking(rig), choosing]) {
            expectReason(await rig.refusal(allocateVmid, input), 'ListingIncomplete');
          }
        },
        { fixture: stepFixture({ acls }) },
      );
      await withSteps(async (rig) => {
        rig.place(restored);
        assert.equal((await rig.run(allocateVmid, looking(rig))).vmid, restored.vmid);
      });
    }));

  it('takes nothing for gone in a cluster that has none of the known nodes', () =>
    withSteps(async (rig) => {
      rig.configure({ nodes: ['other1', 'other2'] });
      const input = looking(rig);
      const elsewhere = { ...input, plan: { ...input.plan, node: 'other1' } };
      const error = expectReason(await rig.refusal(allocateVmid, elsewhere), 'ListingIncomplete');
      assert.match(error.message, /is another cluster behind the URL/);
    }));

  it('leaves a VM alone whose mark somebody took off', () =>
    withSteps(async (rig) => {
      runs(rig, rig.place({ config: { description: 'mine' } }));
      const error = expectReason(
        await rig.refusal(allocateVmid, looking(rig)),
        'OwnershipConflict',
      );
      assert.equal(error.errorClass, 'Permanent');
      assert.equal(rig.sent('PUT', /./).length + rig.sent('POST', /./).length, 0);
    }));

  it('names the node when that is not online', () =>
    withSteps(async (rig) => {
      runs(rig, rig.place({ node: 'pve2' }));
      rig.simulator.setNode('pve2', { state: 'dead' });
      const error = expectReason(await rig.refusal(allocateVmid, looking(rig)), 'Unreachable');
      assert.equal(error.facts.node, 'pve2');
    }));

  it('tells a lock whose task is dead from one that is held', () =>
    withSteps(async (rig) => {
      rig.place({ config: { lock: 'suspending' } });
      const found = await rig.run(allocateVmid, looking(rig));
      assert.ok(found.kind === 'stuck');
      assert.match(found.remedy, /qm unlock/);
    }));

  it('gives up no VMID for a dead lock when three of the provider were given up already', () =>
    withSteps(async (rig) => {
      rig.place({ config: { lock: 'suspending' } });
      for (const n of [1, 2, 3]) {
        const proxy = aWatchedProxy(n);
        const left = { provider: 'pve', vmid: 100_050 + n, node: 'pve1', upid: '', reason: 'lock' };
        rig.records.put({ ...proxy, status: { ...proxy.status, leftovers: [left] } });
      }
      const error = expectReason(await rig.refusal(allocateVmid, looking(rig)), 'VmLeftover');
      assert.equal(error.errorClass, 'Transient');
      assert.match(error.message, /qm unlock/);
    }));
});

describe('the alarm MassAbsence', () => {
  const alarm = {
    id: '0badcafe',
    since: '2026-11-29T20:00:00Z',
    message: '5 of 5 VMs are missing from one listing',
    vmids: [100_000],
  };

  it('keeps a missing VM from being taken for gone, until a person confirms it', () =>
    withSteps(async (rig) => {
      await rig.deps.alarms.write('pve', alarm);
      const error = expectReason(await rig.refusal(allocateVmid, looking(rig)), 'MassAbsence');
      assert.match(error.message, /confirmAbsence: 0badcafe/);
      rig.configure({ confirmAbsence: '0badcafe' });
      assert.equal((await rig.run(allocateVmid, looking(rig))).kind, 'gone');
    }));

  it('keeps a deletion from concluding that its VM is gone, and from choosing a VMID', () =>
    withSteps(async (rig) => {
      await rig.deps.alarms.write('pve', alarm);
      const stopping = {
        ref: rig.ref,
        vm: rig.vmRef(),
        purpose: 'deletion',
        specHash: rig.plan.specHash,
        protectionInherited: false,
        ownClone: null,
      } as const;
      rig.records.markDeleting(rig.ref);
      expectReason(await rig.refusal(stopVm, stopping), 'MassAbsence');
      const { existingOnly: _, ...choosing } = looking(rig);
      expectReason(await rig.refusal(allocateVmid, choosing), 'MassAbsence');
    }));
});

describe('mending a VM that served', () => {
  const mending = (rig: StepRig, emptyDrive = false): MendVmInput => ({
    kind: 'mend',
    ref: rig.ref,
    vm: rig.vmRef(),
    emptyDrive,
  });

  it('resumes one that was paused, with no other request that changes anything', () =>
    withSteps(async (rig) => {
      const running = runs(rig, rig.place());
      running.qmpstatus = 'paused';
      const { upid } = await rig.run(startVm, {
        ref: rig.ref,
        plan: rig.plan,
        vm: rig.vmRef(),
      });
      await rig.finish(upid);
      assert.equal(running.qmpstatus, 'running');
      assert.deepEqual(
        rig.sent('POST', /./).map(({ path }) => path.split('/').at(-1)),
        ['resume'],
      );
    }));

  it('adds our tag beside those of others and switches the agent on, and nothing else', () =>
    withSteps(async (rig) => {
      const vm = rig.place({ config: { tags: 'web', agent: '0', cores: '7' } });
      runs(rig, vm);
      const { changed } = await rig.run(configureVm, mending(rig));
      assert.deepEqual(changed.toSorted(), ['agent', 'tags']);
      assert.equal(vm.config.get('tags'), 'proxy_operator;web');
      assert.equal(vm.config.get('cores'), '7');
    }));

  it('empties the drive of a lost seed, so that the VM starts', () =>
    withSteps(async (rig) => {
      const vm = rig.place({ config: seedOn(rig) });
      await rig.run(configureVm, mending(rig, true));
      assert.match(vm.config.get('ide2') ?? '', /^none,media=cdrom/);
      const input = { ref: rig.ref, plan: rig.plan, vm: rig.vmRef() };
      await rig.finish((await rig.run(startVm, input)).upid);
      assert.ok(vm.running);
    }));

  it('writes nothing to a VM that is not ours', () =>
    withSteps(async (rig) => {
      rig.place({ config: { name: 'web-1', tags: 'web' } });
      assert.deepEqual(await rig.run(configureVm, mending(rig)), { changed: [], found: false });
      assert.equal(rig.sent('PUT', /./).length, 0);
    }));

  it('asks a silent agent once, and keeps an address that is as good as another', () =>
    withSteps(async (rig) => {
      const running = runs(rig, rig.place());
      running.agentUp = false;
      const input = { ref: rig.ref, plan: rig.plan, vm: rig.vmRef(), once: true } as const;
      expectReason(await rig.refusal(pollAgent, input), 'AgentSilent');
    }));
});
