import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ProbeSchedule } from '../../../activities/probe/schedule.ts';

describe('the schedule of probes', () => {
  it('makes a new address due at once and leaves the others their turn', () => {
    const schedule = new ProbeSchedule();
    schedule.keep(['a'], 0);
    assert.deepEqual(schedule.take(0, 9), ['a']);
    schedule.ended('a', 30_000);
    assert.deepEqual(schedule.keep(['a', 'b'], 1_000), ['b']);
    assert.deepEqual(schedule.take(1_000, 9), ['b']);
    assert.equal(schedule.nextDueMs(), 30_000);
  });

  it('never hands out an address that is under way', () => {
    const schedule = new ProbeSchedule();
    schedule.keep(['a'], 0);
    assert.deepEqual(schedule.take(0, 9), ['a']);
    schedule.keep(['a'], 1);
    assert.deepEqual(schedule.take(99_999, 9), []);
    assert.equal(schedule.nextDueMs(), Infinity);
  });

  it('hands out no more than asked for, longest overdue first', () => {
    const schedule = new ProbeSchedule();
    schedule.keep(['late'], 500);
    schedule.keep(['late', 'early'], 100);
    assert.deepEqual(schedule.take(1_000, 1), ['early']);
    assert.deepEqual(schedule.take(1_000, 0), []);
    assert.deepEqual(schedule.take(1_000, 1), ['late']);
  });

  it('forgets an address that is gone, also when its probe ends later', () => {
    const schedule = new ProbeSchedule();
    schedule.keep(['a'], 0);
    schedule.take(0, 1);
    schedule.keep([], 1);
    schedule.ended('a', 2);
    assert.equal(schedule.nextDueMs(), Infinity);
    assert.deepEqual(schedule.keep(['a'], 5), ['a']);
  });
});
