import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { nextMove, type Move } from '../../workflows/nextMove.ts';
import type { ProxyState } from '../../workflows/state.ts';
import { desiredProxy } from '../support/fakeWorld.ts';
import { now, removal, state, trouble, vm } from '../support/proxyStates.ts';

/** What the collection of orphans told. */
const told = { provider: 'pve', vmid: 100005 };

describe('nextMove, of an object that is missing or is being deleted,', () => {
  const table: [string, Partial<ProxyState>, Move][] = [
    [
      'ends when the object was never there',
      { desired: null, objectFound: false },
      { kind: 'end' },
    ],
    [
      'does nothing when the object vanished without a deletion',
      { objectFound: false, serving: vm(1, 'aaaa') },
      { kind: 'park', untilMs: null, why: 'ObjectMissing' },
    ],
    [
      'collects what it was told of when the object is missing',
      { objectFound: false, serving: vm(1, 'aaaa'), orphans: [told] },
      { kind: 'collect', vmid: 100005 },
    ],
    [
      'collects also what no record of it knows, and without ever having seen the object',
      { objectFound: false, desired: null, orphans: [told] },
      { kind: 'collect', vmid: 100005 },
    ],
    [
      'ends when the object is missing before anything was made for it',
      { objectFound: false, historyKnown: true },
      { kind: 'end' },
    ],
    [
      'ends when an External Proxy is missing',
      { objectFound: false, desired: desiredProxy({ mode: 'External' }) },
      { kind: 'end' },
    ],
    [
      'reads the object before it collects',
      { objectFound: false, serving: vm(1, 'aaaa'), orphans: [told], refreshWanted: true },
      { kind: 'park', untilMs: null, why: 'ObjectMissing' },
    ],
    [
      'waits for a Proxmox that did not answer before it collects',
      { objectFound: false, orphans: [told], removalTrouble: trouble() },
      { kind: 'park', untilMs: now + 1_000, why: 'Unreachable' },
    ],
    [
      'removes an orphan while the object is missing',
      { objectFound: false, removals: [{ ...removal, purpose: 'orphan' }] },
      { kind: 'remove', vmid: 100005 },
    ],
    [
      'removes nothing else while the object is missing',
      { objectFound: false, removals: [removal] },
      { kind: 'park', untilMs: null, why: 'ObjectMissing' },
    ],
    [
      'ends when all of a missing object was collected',
      { objectFound: false, collected: true },
      { kind: 'end' },
    ],
    [
      'stays while a VM of a missing object was not collected',
      { objectFound: false, collected: true, serving: vm(1, 'aaaa') },
      { kind: 'park', untilMs: null, why: 'ObjectMissing' },
    ],
    [
      'takes the VM out of service before it removes it',
      { deleting: true, serving: vm(1, 'aaaa') },
      { kind: 'beginDeletion' },
    ],
    [
      'lists the VMs of a Proxy whose past it does not know before it lets the object go',
      { deleting: true },
      { kind: 'listForDeletion' },
    ],
    [
      'asks no provider when no clone was ever sent',
      { deleting: true, historyKnown: true },
      { kind: 'release' },
    ],
    [
      'a deletion waits while the Proxy is paused',
      { deleting: true, desired: desiredProxy({ paused: true }), serving: vm(1, 'aaaa') },
      { kind: 'park', untilMs: null, why: 'DeletionPaused' },
    ],
    [
      'a paused deletion whose finalizer was taken off ends: nobody could end the pause',
      {
        deleting: true,
        objectFound: false,
        desired: desiredProxy({ paused: true }),
        serving: vm(1, 'aaaa'),
      },
      { kind: 'end' },
    ],
    [
      'a forced deletion waits for nothing, not even the pause',
      {
        deleting: true,
        forced: true,
        desired: desiredProxy({ paused: true }),
        serving: vm(1, 'aaaa'),
        removalTrouble: trouble(),
      },
      { kind: 'forceRelease' },
    ],
    [
      'a finalizer that could not be removed is tried again at its pace',
      { deleting: true, historyKnown: true, removalTrouble: trouble({ step: 'releaseProxy' }) },
      { kind: 'park', untilMs: now + 1_000, why: 'Unreachable' },
    ],
    ['ends once the finalizer is gone', { deleting: true, released: true }, { kind: 'end' }],
  ];
  for (const [title, changes, expected] of table) {
    it(title, () => {
      assert.deepEqual(nextMove(state(changes), now), expected);
    });
  }
});
