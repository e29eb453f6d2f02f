import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { nextMove, type Move } from '../../workflows/nextMove.ts';
import type { ProxyState } from '../../workflows/state.ts';
import { desiredProxy } from '../support/fakeWorld.ts';
import { healthyNext, now, removal, state, trouble, vm } from '../support/proxyStates.ts';

/** What the collection of orphans told. */
const told = { provider: 'pve', vmid: 100005 };

/** A VM was made and is healthy; the Secret that it was made from is gone, and the object is as it was. */
const withoutSecret: Partial<ProxyState> = {
  desired: desiredProxy({ specHash: null }),
  lastWanted: { generation: 1, specHash: 'aaaa' },
  next: vm(2, 'aaaa', { ip: '192.0.2.11' }),
  health: healthyNext,
};

describe('nextMove', () => {
  const table: [string, Partial<ProxyState>, Move][] = [
    ['makes a VM when none is there', {}, { kind: 'make', specHash: 'aaaa' }],
    [
      'parks while the wanted VM serves',
      { serving: vm(1, 'aaaa') },
      { kind: 'park', untilMs: null, why: 'Serving' },
    ],
    [
      'rewrites the mark of the VM that serves when it names another deletion policy',
      { serving: vm(1, 'aaaa', { markedPolicy: 'Retain' }) },
      { kind: 'mark', vmid: 1, deletionPolicy: 'Delete' },
    ],
    [
      'looks at a mark that nobody knows, also while another VM is to be made',
      { serving: vm(1, 'old', { markedPolicy: null }) },
      { kind: 'mark', vmid: 1, deletionPolicy: 'Delete' },
    ],
    [
      'goes on with a replacement while a mark cannot be written',
      {
        serving: vm(1, 'old', { markedPolicy: 'Retain' }),
        markTrouble: trouble({ step: 'configureVm', reason: 'WaitingForLock' }),
      },
      { kind: 'make', specHash: 'aaaa' },
    ],
    [
      'tries a mark again that could not be written',
      {
        serving: vm(1, 'aaaa', { markedPolicy: 'Retain' }),
        markTrouble: trouble({ step: 'configureVm', reason: 'WaitingForLock' }),
      },
      { kind: 'park', untilMs: now + 1_000, why: 'Serving' },
    ],
    [
      'writes no mark while paused',
      {
        desired: desiredProxy({ paused: true }),
        serving: vm(1, 'aaaa', { markedPolicy: 'Retain' }),
      },
      { kind: 'park', untilMs: null, why: 'Paused' },
    ],
    [
      'does nothing to Proxmox while paused',
      { desired: desiredProxy({ paused: true }) },
      { kind: 'park', untilMs: null, why: 'Paused' },
    ],
    [
      'looks at a leftover when nothing else is to be done',
      { serving: vm(1, 'aaaa'), orphans: [told] },
      { kind: 'collect', vmid: 100005 },
    ],
    [
      'looks at a leftover after what is wanted was made',
      { orphans: [told] },
      { kind: 'make', specHash: 'aaaa' },
    ],
    [
      'lets no leftover be looked at during a pause',
      { serving: vm(1, 'aaaa'), orphans: [told], desired: desiredProxy({ paused: true }) },
      { kind: 'park', untilMs: null, why: 'Paused' },
    ],
    [
      'makes the wanted VM although a leftover of its spec cannot be removed yet',
      {
        removals: [{ ...removal, vm: vm(100005, 'aaaa'), purpose: 'leftover', trouble: trouble() }],
      },
      { kind: 'make', specHash: 'aaaa' },
    ],
    [
      'waits for the next attempt after a transient failure',
      { trouble: trouble() },
      { kind: 'park', untilMs: now + 1_000, why: 'Unreachable' },
    ],
    [
      'tries again when its time has come',
      { trouble: trouble({ nextAtMs: now }) },
      { kind: 'make', specHash: 'aaaa' },
    ],
    [
      'stays where a latched failure put it',
      { trouble: trouble({ errorClass: 'Permanent', reason: 'PlacementInvalid', nextAtMs: null }) },
      { kind: 'park', untilMs: null, why: 'PlacementInvalid' },
    ],
    [
      'waits for the probe once the VM has its address',
      { next: vm(1, 'aaaa', { ip: '192.0.2.11' }) },
      { kind: 'park', untilMs: null, why: 'AwaitingHealth' },
    ],
    [
      'promotes a VM whose probe succeeded',
      { next: vm(1, 'aaaa', { ip: '192.0.2.11' }), health: healthyNext },
      { kind: 'promote', vmid: 1 },
    ],
    [
      'does not take the health of another port for that of the wanted one',
      {
        desired: desiredProxy({ port: 8080 }),
        next: vm(1, 'aaaa', { ip: '192.0.2.11' }),
        health: healthyNext,
      },
      { kind: 'park', untilMs: null, why: 'AwaitingHealth' },
    ],
    [
      'discards a VM being made for a spec nobody wants any more',
      { next: vm(2, 'bbbb') },
      { kind: 'discardNext', vmid: 2 },
    ],
    [
      'cancels a replacement when the spec goes back to the serving one',
      { serving: vm(1, 'aaaa'), next: vm(2, 'bbbb') },
      { kind: 'discardNext', vmid: 2 },
    ],
    [
      'CreateFirst makes the new VM while the old one serves',
      { serving: vm(1, 'old') },
      { kind: 'make', specHash: 'aaaa' },
    ],
    [
      'DeleteFirst retires the old VM first',
      { serving: vm(1, 'old'), desired: desiredProxy({ replaceStrategy: 'DeleteFirst' }) },
      { kind: 'retireServing', vmid: 1, specHash: 'aaaa' },
    ],
    [
      'DeleteFirst removes before it makes',
      { removals: [removal], desired: desiredProxy({ replaceStrategy: 'DeleteFirst' }) },
      { kind: 'remove', vmid: 100005 },
    ],
    [
      'a half-made VM goes before another of its name is made',
      { removals: [{ ...removal, vm: vm(7, 'aaaa'), purpose: 'incomplete' }] },
      { kind: 'remove', vmid: 7 },
    ],
    [
      'takes a VM up again whose spec is wanted again before it was destroyed',
      { removals: [{ ...removal, vm: vm(7, 'aaaa') }] },
      { kind: 'reclaim', vmid: 7 },
    ],
    [
      'waits for the drain of the VM on its way out',
      { serving: vm(1, 'aaaa'), removals: [{ ...removal, drainUntilMs: now + 5_000 }] },
      { kind: 'park', untilMs: now + 5_000, why: 'Draining' },
    ],
    [
      'a removal in trouble does not hold up a replacement',
      { serving: vm(1, 'old'), removals: [{ ...removal, trouble: trouble() }] },
      { kind: 'make', specHash: 'aaaa' },
    ],
    [
      'a fourth VM is not made while three await their removal',
      {
        serving: vm(1, 'old'),
        removals: [removal, removal, removal].map((one) => ({ ...one, trouble: trouble() })),
      },
      { kind: 'park', untilMs: now + 1_000, why: 'Unreachable' },
    ],
    [
      'a removal in trouble does not hold up another one',
      {
        serving: vm(1, 'aaaa'),
        removals: [
          { ...removal, trouble: trouble() },
          { ...removal, vm: vm(100006, 'older') },
        ],
      },
      { kind: 'remove', vmid: 100006 },
    ],
    [
      'says that a replacement is late 15 minutes after its start',
      {
        serving: vm(1, 'old'),
        next: vm(2, 'aaaa', { ip: '192.0.2.11', startedAtMs: now - 15 * 60_000 }),
      },
      { kind: 'markLate', vmid: 2 },
    ],
    [
      'keeps serving when the Secret with cloud-init is gone',
      { serving: vm(1, 'aaaa'), desired: desiredProxy({ specHash: null }) },
      { kind: 'park', untilMs: null, why: 'CloudInitUnavailable' },
    ],
    [
      'promotes what was made for this object although its Secret is gone meanwhile',
      { ...withoutSecret, serving: vm(1, 'old') },
      { kind: 'promote', vmid: 2 },
    ],
    [
      'promotes nothing without the Secret when the object was edited since the VM was wanted',
      {
        ...withoutSecret,
        desired: desiredProxy({ specHash: null, generation: 2 }),
        serving: vm(1, 'old'),
      },
      { kind: 'park', untilMs: null, why: 'CloudInitUnavailable' },
    ],
    [
      'promotes nothing without the Secret that was made for another spec than the last one wanted',
      { ...withoutSecret, next: vm(2, 'bbbb', { ip: '192.0.2.11' }) },
      { kind: 'refresh' },
    ],
  ];
  for (const [title, changes, expected] of table) {
    it(title, () => {
      assert.deepEqual(nextMove(state(changes), now), expected);
    });
  }
});
