import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ProbeSchedule } from '../../../activities/probe/schedule.ts';

/** Keys taken with this much room. */
function take(schedule: ProbeSchedule, nowMs: number, all: number, slow = all): string[] {
  return schedule.take(nowMs, { all, slow }).map(({ key }) => key);
}

describe('the schedule of probes', () => {
  it('makes a new address due at once and leaves the others their turn', () => {
    const schedule = new ProbeSchedule();
    schedule.keep(['a'], 0);
    assert.deepEqual(take(schedule, 0, 9), ['a']);
    schedule.ended('a', 30_000);
    assert.deepEqual(schedule.keep(['a', 'b'], 1_000), ['b']);
    assert.deepEqual(take(schedule, 1_000, 9), ['b']);
    assert.equal(schedule.nextDueMs(1_000), 30_000);
  });

  it('never hands out an address that is under way', () => {
    const schedule = new ProbeSchedule();
    schedule.keep(['a'], 0);
    assert.deepEqual(take(schedule, 0, 9), ['a']);
    schedule.keep(['a'], 1);
    schedule.hasten('a', 2);
    assert.deepEqual(take(schedule, 99_999, 9), []);
    assert.equal(schedule.nextDueMs(0), Infinity);
  });

  it('hands out no more than there is room for, longest overdue first, and says how late each is', () => {
    const schedule = new ProbeSchedule();
    schedule.keep(['late'], 500);
    schedule.keep(['late', 'early'], 100);
    assert.deepEqual(schedule.take(1_000, { all: 1, slow: 1 }), [
      { key: 'early', slow: false, lateMs: 900 },
    ]);
    assert.deepEqual(take(schedule, 1_000, 0), []);
    assert.deepEqual(take(schedule, 1_000, 1), ['late']);
  });

  it('lets slow ones wait for places of their own and nobody wait for them', () => {
    const schedule = new ProbeSchedule();
    schedule.keep(['slow 1', 'slow 2', 'quick'], 0);
    take(schedule, 0, 9);
    schedule.ended('slow 1', 1_000, true);
    schedule.ended('slow 2', 1_001, true);
    schedule.ended('quick', 1_002);
    assert.deepEqual(take(schedule, 2_000, 9, 1), ['slow 1', 'quick']);
    // It is overdue and waits for room: time alone does not make it come.
    assert.equal(schedule.nextDueMs(2_000), Infinity);
    schedule.ended('slow 1', 9_000, true);
    assert.deepEqual(take(schedule, 2_001, 9, 1), ['slow 2']);
  });

  it('forgets that an address was slow once it is quick again', () => {
    const schedule = new ProbeSchedule();
    schedule.keep(['a'], 0);
    schedule.ended('a', 1, true);
    assert.deepEqual(take(schedule, 1, 9, 0), []);
    assert.deepEqual(take(schedule, 1, 9, 1), ['a']);
    schedule.ended('a', 2);
    assert.deepEqual(take(schedule, 2, 9, 0), ['a']);
  });

  it('brings a turn forward, and puts none off', () => {
    const schedule = new ProbeSchedule();
    schedule.keep(['a', 'b'], 0);
    schedule.ended('a', 3_600_000);
    schedule.ended('b', 10);
    for (const key of ['a', 'b']) schedule.hasten(key, 50);
    assert.deepEqual(take(schedule, 50, 9), ['b', 'a']);
  });

  it('forgets an address that is gone, also when its probe ends later', () => {
    const schedule = new ProbeSchedule();
    schedule.keep(['a'], 0);
    take(schedule, 0, 1);
    schedule.keep([], 1);
    schedule.ended('a', 2);
    assert.equal(schedule.nextDueMs(0), Infinity);
    assert.deepEqual(schedule.keep(['a'], 5), ['a']);
  });
});
