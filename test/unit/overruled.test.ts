/** What is begun in a moment is not cancelled by that same moment, whatever the state is. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  array,
  assert as always,
  boolean,
  constant,
  constantFrom,
  oneof,
  property,
  record,
  type Arbitrary,
} from 'fast-check';
import type { VmRecord } from '../../workflows/contract/proxy.ts';
import { moveKey, nextMove } from '../../workflows/nextMove.ts';
import { isOverruled } from '../../workflows/overruled.ts';
import type { Health, ProxyState, Removal, Trouble } from '../../workflows/state.ts';
import { desiredProxy } from '../support/fakeWorld.ts';
import { healthyNext, now, removal, state, trouble, vm } from '../support/proxyStates.ts';

const hashes = ['aaaa', 'bbbb'] as const;
const maybe = <T>(value: Arbitrary<T>): Arbitrary<T | null> => oneof(constant(null), value);

function vmAt(vmid: number): Arbitrary<VmRecord> {
  return record({ hash: constantFrom(...hashes), ip: constantFrom(null, '192.0.2.11') }).map(
    ({ hash, ip }) => vm(vmid, hash, { ip, everReady: ip !== null }),
  );
}

const troubles: Arbitrary<Trouble> = constantFrom(
  trouble(),
  trouble({ nextAtMs: now - 1 }),
  trouble({ nextAtMs: null, errorClass: 'Permanent' }),
  trouble({ step: 'releaseProxy' }),
);

const purposes: readonly Removal['purpose'][] = [
  'deletion',
  'replacement',
  'incomplete',
  'leftover',
  'orphan',
  'retain',
];

const removals = array(
  record({
    purpose: constantFrom(...purposes),
    vm: oneof(vmAt(100_003), vmAt(100_004)),
    drainUntilMs: constantFrom(null, now - 1, now + 1_000),
    destroyed: boolean(),
    trouble: maybe(troubles),
  }).map((fields): Removal => ({ ...removal, ...fields })),
  { maxLength: 3 },
);

const desired = record({
  mode: constantFrom('Managed' as const, 'External' as const),
  paused: boolean(),
  specHash: constantFrom(null, ...hashes),
  replaceStrategy: constantFrom('CreateFirst' as const, 'DeleteFirst' as const),
  deletionPolicy: constantFrom('Delete' as const, 'Retain' as const),
}).map((fields) => desiredProxy(fields));

const states: Arbitrary<ProxyState> = record({
  desired: maybe(desired),
  objectFound: boolean(),
  deleting: boolean(),
  forced: boolean(),
  refreshWanted: boolean(),
  historyKnown: boolean(),
  cloneEverSent: boolean(),
  listedForDeletion: boolean(),
  collected: boolean(),
  replacementLate: boolean(),
  lookWanted: boolean(),
  serving: maybe(vmAt(100_001)),
  next: maybe(vmAt(100_002)),
  removals,
  orphans: array(constant({ provider: 'pve', vmid: 100_009 }), { maxLength: 1 }),
  health: constantFrom<Health[]>([], healthyNext),
  trouble: maybe(troubles),
  removalTrouble: maybe(troubles),
  markTrouble: maybe(troubles),
  repairTrouble: maybe(troubles),
}).map((fields) => {
  if (fields.desired !== null)
    return state({ ...fields, forced: fields.forced && fields.deleting });
  // Of an object that was never read nothing is known but what the collection told.
  const { orphans, removals: ofOrphans, removalTrouble, refreshWanted } = fields;
  return state({
    desired: null,
    objectFound: false,
    orphans,
    removals: ofOrphans.map((one) => ({ ...one, purpose: 'orphan' })),
    removalTrouble,
    refreshWanted,
  });
});

describe('a move', () => {
  it('is never overruled by the very state that asked for it', () => {
    const kinds = new Set<string>();
    always(
      property(states, (one) => {
        const move = nextMove(one, now);
        kinds.add(move.kind);
        if (move.kind === 'park' || move.kind === 'end') return;
        const otherwise = (): boolean => moveKey(nextMove(one, now)) !== moveKey(move);
        assert.equal(isOverruled(one, move, otherwise, false), false, moveKey(move));
      }),
      { numRuns: 20_000 },
    );
    assert.ok(kinds.size >= 15, `too few kinds of moves were asked for: ${[...kinds].join(', ')}`);
  });
});
