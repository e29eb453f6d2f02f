import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ipOf, latenessOf, numberOf, percentile, probeReport } from '../../bench/probeKinds.ts';

test('the lateness of a probe is the time since its slot, whichever interval it falls into', () => {
  // Slots at 3, 33, 63 s …
  for (const [atMs, lateMs] of [
    [33_000, 0],
    [33_012, 12],
    [63_500, 500],
    [62_998, 0],
    [62_000, 29_000],
  ] as const) {
    assert.equal(latenessOf(atMs, 30_000, 0.1), lateMs);
  }
});

test('the percentile is a value that occurred', () => {
  const values = Array.from({ length: 100 }, (_, index) => index + 1);
  assert.deepEqual([0.5, 0.99, 1].map((part) => percentile(values, part)), [50, 99, 100]); // prettier-ignore
  assert.equal(percentile([7], 0.01), 7);
  assert.equal(percentile([], 0.5), 0);
});

test('every number has an address of its own', () => {
  for (const number of [0, 255, 256, 59_999]) assert.equal(numberOf(ipOf(number)), number);
});

test('the report misses its aim when a probe is late or left out', () => {
  const cost = { perSecond: 33, heapMiB: 1, residentMiB: 1, busy: 0.1 };
  const few = { ...cost, proxies: 10, latenessMs: [10], missing: 0 };
  const many = (latenessMs: number[], missing: number) =>
    probeReport([few, { ...cost, proxies: 1_000, latenessMs, missing }], 'here').slice(-2);
  assert.match(many([20], 0)[0] ?? '', /^met /);
  assert.match(many([20], 0)[1] ?? '', /^ratio 1000:10 = 2\.00 /);
  assert.match(many([301], 0)[0] ?? '', /^MISSED /);
  assert.match(many([20], 1)[0] ?? '', /^MISSED /);
});
