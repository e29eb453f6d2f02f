import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { divide, median, without } from '../../bench/intervals.ts';

const at = (fromMs: number, toMs: number): { fromMs: number; toMs: number } => ({ fromMs, toMs });

describe('time of a benchmark', () => {
  it('is cut where something else covers it', () => {
    assert.deepEqual(without([at(0, 10)], at(3, 5)), [at(0, 3), at(5, 10)]);
    assert.deepEqual(without([at(0, 10)], at(-5, 4)), [at(4, 10)]);
    assert.deepEqual(without([at(0, 10), at(20, 30)], at(5, 25)), [at(0, 5), at(25, 30)]);
    assert.deepEqual(without([at(0, 10)], at(0, 10)), []);
    assert.deepEqual(without([at(0, 10)], at(10, 20)), [at(0, 10)]);
  });

  it('goes to the first that claims it, and every millisecond is counted once', () => {
    const shares = [
      { label: 'task', interval: at(20, 60) },
      { label: 'step', interval: at(10, 70) },
      { label: 'task', interval: at(55, 80) },
      { label: 'outside', interval: at(200, 300) },
    ];
    const divided = divide(at(0, 100), shares, 'rest');
    assert.deepEqual(
      [...divided],
      [
        ['task', 50],
        ['step', 20],
        ['outside', 0],
        ['rest', 30],
      ],
    );
  });

  it('is told by the middle of several runs', () => {
    assert.equal(median([9, 1, 5]), 5);
    assert.equal(median([4, 1, 3, 2]), 2.5);
    assert.equal(median([7]), 7);
  });
});
