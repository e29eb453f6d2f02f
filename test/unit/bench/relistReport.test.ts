import assert from 'node:assert/strict';
import { test } from 'node:test';
import { relistReport, type RelistCost } from '../../bench/relistReport.ts';

const list = { requests: 2, tookMs: 100, bytes: 1_024, ended: true };
const few: RelistCost = {
  proxies: 200,
  readyMs: 500,
  lists: [list],
  cpuMs: 10,
  blockedMs: 5,
  heapMiB: 40,
  residentMiB: 200,
  starts: 0,
  signals: 0,
  secondsUp: 18,
};
const many: RelistCost = {
  ...few,
  proxies: 2_000,
  lists: [{ ...list, requests: 20, tookMs: 900, bytes: 10_240 }],
};

test('the report ends with the ratio of requests, bytes and time', () => {
  const lines = relistReport([few, many], 'here');
  assert.equal(lines.at(-1), 'ratio 2000:200 = 10.00 in requests, 10.00 in bytes, 9.00 in time');
});

test('it takes some starts for those of the hour, and no signal for any', () => {
  const verdict = (cost: Partial<RelistCost>): string =>
    relistReport([few, { ...many, ...cost }], 'here').at(-2) ?? '';
  // Ten are due within 18 s.
  assert.match(verdict({ starts: 12 }), /^met /);
  assert.match(verdict({ starts: 40 }), /^MISSED /);
  assert.match(verdict({ signals: 1 }), /^MISSED /);
});
