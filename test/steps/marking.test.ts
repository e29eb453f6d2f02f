/** configureVm, kind `mark`: the mark of a VM that serves or stays is kept current, and nothing else is written. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { configureVm } from '../../activities/configureVm.ts';
import { destroyVm } from '../../activities/destroyVm.ts';
import { stopVm } from '../../activities/stopVm.ts';
import { parseMark } from '../../activities/vm/identity.ts';
import type { MarkVmInput } from '../../workflows/contract/steps.ts';
import { powerOn } from '../simulator/power.ts';
import { deleting, removing, writes } from '../support/removals.ts';
import { stepFixture } from '../support/stepFixture.ts';
import { expectReason, withSteps, type PlacedVm, type StepRig } from '../support/stepHarness.ts';

function marking(rig: StepRig, fields: Partial<MarkVmInput> = {}): MarkVmInput {
  const { ref } = rig;
  const policy = { deletionPolicy: 'Retain', retained: false } as const;
  return { kind: 'mark', ref, vm: rig.vmRef(), ...policy, ...fields };
}

function configOf(rig: StepRig): Record<string, string> {
  return Object.fromEntries(rig.simulator.cluster.vms.get(rig.vmid)?.config ?? []);
}

describe('the mark', () => {
  it('of a running VM follows the deletion policy; lines and tags of others stay, and nothing waits for a restart', () =>
    withSteps(async (rig) => {
      const vm = rig.place({ config: { tags: 'prod' } });
      vm.config.set('description', `owner: ops\n${vm.config.get('description')}\nticket 7`);
      powerOn(rig.simulator.core, vm);
      const before = configOf(rig);
      const known = parseMark(before['description'] ?? '');
      const { changed, found } = await rig.run(configureVm, marking(rig));
      assert.deepEqual([changed.sort(), found], [['description', 'tags'], true]);
      const after = configOf(rig);
      const mark = parseMark(after['description'] ?? '');
      assert.deepEqual(mark, { ...known, deletionPolicy: 'Retain' });
      assert.match(after['description'] ?? '', /^owner: ops\n[^]*\nticket 7$/);
      assert.equal(after['tags'], 'prod;proxy_operator');
      const { description: _d, tags: _t, digest: _g, ...rest } = before;
      for (const [key, value] of Object.entries(rest)) assert.equal(after[key], value, key);
      assert.deepEqual(rig.simulator.cluster.vms.get(rig.vmid)?.pending ?? new Map(), new Map());
    }));

  it('that is current already is not written again', () =>
    withSteps(async (rig) => {
      rig.place();
      await rig.run(configureVm, marking(rig));
      const sent = writes(rig).length;
      assert.deepEqual(await rig.run(configureVm, marking(rig)), { changed: [], found: true });
      assert.equal(writes(rig).length, sent);
    }));

  it('says that the VM is retained, and no stop or destroy touches it from then on', () =>
    deleting(async (rig) => {
      powerOn(rig.simulator.core, rig.place());
      await rig.run(configureVm, marking(rig, { retained: true }));
      const mark = parseMark(configOf(rig)['description'] ?? '');
      assert.deepEqual([mark?.managed, mark?.deletionPolicy], ['retained', 'Retain']);
      const sent = writes(rig).length;
      assert.deepEqual(await rig.run(stopVm, removing(rig)), { kind: 'gone' });
      assert.deepEqual(await rig.run(destroyVm, removing(rig)), { kind: 'gone' });
      assert.equal(writes(rig).length, sent);
    }));

  it('of a stopped VM is written too, and its hardware is not', () =>
    withSteps(async (rig) => {
      rig.place();
      const { changed } = await rig.run(configureVm, marking(rig, { retained: true }));
      assert.deepEqual(changed.sort(), ['description', 'tags']);
    }));

  const others: [title: string, vm: PlacedVm | null][] = [
    ['a VM of another name', { config: { name: 'web-1' } }],
    ["another Proxy's VM", { uid: '22222222-2222-4222-8222-222222222222' }],
    ['a VM of our name without a mark', { config: { description: null } }],
    ['a container', { type: 'lxc', config: { hostname: 'ct7', name: null, scsi0: null } }],
    ['nothing', null],
  ];
  for (const [title, vm] of others) {
    it(`is not put on ${title}`, () =>
      withSteps(async (rig) => {
        if (vm !== null) rig.place(vm);
        assert.deepEqual(await rig.run(configureVm, marking(rig)), { changed: [], found: false });
        assert.deepEqual(writes(rig), []);
      }));
  }

  it('waits for a lock, and calls no VM gone without the right to see it', async () => {
    await withSteps(async (rig) => {
      rig.place({ config: { lock: 'backup' } });
      const error = expectReason(await rig.refusal(configureVm, marking(rig)), 'WaitingForLock');
      assert.deepEqual([error.facts.lock, error.facts.vmid], ['backup', rig.vmid]);
    });
    await withSteps(
      async (rig) => {
        expectReason(await rig.refusal(configureVm, marking(rig)), 'ListingIncomplete');
      },
      { fixture: stepFixture({ acls: [] }) },
    );
  });

  const locks = ['suspended', 'suspending', 'backup', 'snapshot'] as const;
  const toRetain = (rig: StepRig, lock: string): string => {
    rig.plan.deletionPolicy = 'Retain';
    rig.place({ config: { lock } });
    return configOf(rig)['description'] ?? '';
  };
  for (const lock of locks) {
    it(`is left as it is when nobody holds the lock (${lock}) of a VM that stays and its policy is Retain already`, () =>
      withSteps(async (rig) => {
        const before = toRetain(rig, lock);
        const result = await rig.run(configureVm, marking(rig, { retained: true }));
        assert.deepEqual(result, { changed: [], found: true, unmarkedFor: lock });
        assert.deepEqual(writes(rig), []);
        assert.equal(parseMark(before)?.deletionPolicy, 'Retain');
      }));

    it(`waits for a task that holds the lock (${lock})`, () =>
      withSteps(async (rig) => {
        toRetain(rig, lock);
        // A backup of several VMs names none of them.
        const [type, id] = lock === 'backup' ? ['vzdump', ''] : ['qmx', String(rig.vmid)];
        const spec = { node: 'pve1', type, id, authId: 'root@pam' };
        rig.simulator.core.tasks.start(spec, (worker) => worker.sleep(5_000));
        const input = marking(rig, { retained: true });
        expectReason(await rig.refusal(configureVm, input), 'WaitingForLock');
      }));
  }

  it('waits for any lock while its policy is still Delete, which would let the VM be collected', () =>
    withSteps(async (rig) => {
      rig.place({ config: { lock: 'suspended' } });
      const input = marking(rig, { retained: true });
      expectReason(await rig.refusal(configureVm, input), 'WaitingForLock');
    }));

  it('is not written over a change that somebody made meanwhile', () =>
    withSteps(async (rig) => {
      const vm = rig.place();
      const reason = 'checksum mismatch (file change by other user?)';
      const action = { kind: 'status', status: 500, reason, when: 'before' } as const;
      rig.simulator.faults.push({ method: 'PUT', path: /\/config$/, action });
      const before = vm.config.get('description');
      expectReason(await rig.refusal(configureVm, marking(rig)), 'ConfigChanged');
      assert.equal(vm.config.get('description'), before);
      const [put] = rig.sent('PUT', /\/config$/);
      assert.match(String(put?.params['digest']), /^[0-9a-f]{40}$/);
    }));
});
