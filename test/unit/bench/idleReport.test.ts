import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  checkRounds,
  costOf,
  idleReport,
  kindOf,
  wholeRounds,
  type IdleCost,
  type TimedRequest,
} from '../../bench/idleReport.ts';

function get(seconds: number, path: string): TimedRequest {
  return { time: seconds * 1_000, method: 'GET', path };
}

/** Two nodes checked every minute, VMs listed in between. */
const log = [
  get(1, '/nodes'),
  get(10, '/version'),
  get(10.5, '/version'),
  get(15, '/nodes'),
  get(20, '/nodes/a/qemu/101/config'),
  get(20.1, '/nodes/a/qemu/101/agent/network-get-interfaces'),
  get(30, '/nodes/b/qemu/102/config'),
  get(60, '/nodes'),
  get(70, '/version'),
  get(70.2, '/version'),
  get(80, '/nodes'),
];
const memory = {
  worker: { made: 200, restarted: 150 },
  controller: { made: 100, restarted: 90 },
};
const circumstances = { rounds: 1, cpus: 2, loadBefore: 0, loadAfter: 1 };

function cost(size: number, otherRequests: number): IdleCost {
  const [minutes, eventsAdded] = [1, 0];
  const counts = new Map([['GET /nodes', otherRequests]]);
  return { size, minutes, counts, recheckRequests: 0, otherRequests, watchRounds: 5, eventsAdded, memory }; // prettier-ignore
}

describe('requests of idle Proxies', () => {
  it('are counted from the beginning of one round of checks to that of another', () => {
    assert.deepEqual(checkRounds(log), [10_000, 70_000]);
    const stretch = wholeRounds(log, 1);
    assert.deepEqual([stretch?.fromMs, stretch?.toMs], [10_000, 70_000]);
    assert.deepEqual(stretch?.requests, log.slice(1, 8));
    assert.equal(wholeRounds(log, 2), null);
  });

  it('are told apart from agent re-checks, but for a config that was read for another reason', () => {
    const stretch = wholeRounds(log, 1);
    assert.ok(stretch);
    const { recheckRequests, otherRequests, minutes, watchRounds } = costOf(stretch, {
      size: 2,
      eventsAdded: 0,
      memory,
    });
    assert.deepEqual([recheckRequests, otherRequests, minutes, watchRounds], [2, 5, 1, 1]);
  });

  it('are of one kind whatever node, VM and storage they name', () => {
    const kinds = ['/nodes/a/storage/s/content', '/nodes/b/storage/t/content'];
    assert.equal(new Set(kinds.map((path) => kindOf(get(0, path)))).size, 1);
    assert.equal(kindOf(get(0, '/nodes/a/qemu/7/config')), 'GET /nodes/…/qemu/…/config');
  });

  it('end in the ratio of the most Proxies to the fewest, and say when it is too high', () => {
    const good = idleReport([cost(1, 20), cost(100, 30), cost(1000, 22)], circumstances);
    assert.equal(good.at(-1), 'ratio 1000:1 = 1.10');
    assert.match(good.at(-2) ?? '', /^met /);
    const bad = idleReport([cost(1, 20), cost(1000, 23)], circumstances);
    assert.equal(bad.at(-1), 'ratio 1000:1 = 1.15');
    assert.match(bad.at(-2) ?? '', /^MISSED /);
  });
});
