import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { randomUUID } from 'node:crypto';
import { dueForEnsure, resyncPeriodMs } from '../../../controller/resync.ts';

const uids = Array.from({ length: 500 }, () => randomUUID());
const all = new Set(uids);
const fiveMinutes = 300_000;

describe('dueForEnsure', () => {
  it('names exactly those that do not run, when it is nobody’s turn', () => {
    const missing = uids.slice(0, 3);
    const running = new Set(uids.slice(3));
    assert.deepEqual(dueForEnsure(uids, running, 1_000_000, 1_000_000), missing);
  });

  it('gives each one turn an hour, whatever the pace of lists', () => {
    const turns = new Map<string, number>();
    const startMs = Date.UTC(2026, 0, 2);
    for (let ms = 0; ms < resyncPeriodMs; ms += fiveMinutes) {
      for (const uid of dueForEnsure(uids, all, startMs + ms, startMs + ms + fiveMinutes)) {
        turns.set(uid, (turns.get(uid) ?? 0) + 1);
      }
    }
    assert.deepEqual(new Set(turns.keys()), all);
    assert.ok([...turns.values()].every((count) => count === 1));
  });

  it('spreads the turns', () => {
    const startMs = Date.UTC(2026, 0, 2);
    const due = dueForEnsure(uids, all, startMs, startMs + fiveMinutes).length;
    // 1 in 12 of 500; a fair spread stays far from all and from none.
    assert.ok(due > 10 && due < 90, String(due));
  });

  it('falls back to the turns when Temporal could not be asked', () => {
    const startMs = Date.UTC(2026, 0, 2);
    const due = dueForEnsure(uids, null, startMs, startMs + fiveMinutes);
    assert.ok(due.length < 90);
  });

  it('names all after an hour without a list', () => {
    assert.equal(dueForEnsure(uids, all, 0, resyncPeriodMs).length, uids.length);
  });
});
