import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import { ProbeSchedule } from '../../../activities/probe/schedule.ts';
import { steadyClock, wallClock } from '../../../worker/clocks.ts';

describe('the clocks of a worker', () => {
  it('keep what is paced going when the wall clock is set back', () => {
    const schedule = new ProbeSchedule();
    const room = { all: 1, slow: 1 };
    schedule.keep(['a'], steadyClock.now());
    assert.equal(schedule.take(steadyClock.now(), room).length, 1);
    schedule.ended('a', steadyClock.now());
    mock.timers.enable({ apis: ['Date'], now: Date.now() - 3_600_000 });
    try {
      assert.equal(schedule.take(wallClock.now(), room).length, 0);
      assert.equal(schedule.take(steadyClock.now(), room).length, 1);
    } finally {
      mock.timers.reset();
    }
  });

  it('agree at the start, so that times people read are right', () => {
    assert.ok(Math.abs(steadyClock.now() - wallClock.now()) < 60_000);
  });
});
