import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ProbeOutcome } from '../../../activities/probe/probe.ts';
import { nextProbeAtMs, nextVerdict, startingVerdict } from '../../../activities/probe/verdict.ts';
import type { Verdict } from '../../../activities/probe/verdict.ts';

const good: ProbeOutcome = {
  healthy: true,
  reason: 'ProbeSucceeded',
  message: 'ok',
  pastProxy: false,
};
const bad: ProbeOutcome = {
  healthy: false,
  reason: 'ConnectionRefused',
  message: 'no',
  pastProxy: false,
};

/** Verdicts after each probe: `+` good, `-` bad. */
function run(start: boolean | null, probes: string, failure: number, success: number): string {
  let verdict: Verdict = startingVerdict(start);
  let healths = '';
  for (const probe of probes) {
    verdict = nextVerdict(verdict, probe === '+' ? good : bad, { failure, success });
    healths += { true: 'T', false: 'F', null: '?' }[String(verdict.healthy)];
  }
  return healths;
}

describe('verdicts', () => {
  for (const [title, start, probes, failure, success, expected] of [
    ['the first good probe makes a new address healthy', null, '+', 3, 1, 'T'],
    ['a new address is judged bad only at the threshold', null, '---', 3, 1, '??F'],
    ['failures short of the threshold change nothing', true, '--+--+', 3, 1, 'TTTTTT'],
    ['the threshold counts failures in a row', true, '--+---', 3, 1, 'TTTTTF'],
    ['a bad one is good again at the success threshold', false, '++', 3, 2, 'FT'],
    ['successes must be in a row as well', false, '+-++', 3, 2, 'FFFT'],
    ['a threshold of one acts at once', true, '-+-', 1, 1, 'FTF'],
    ['a verdict known from the status goes on from there', true, '---', 3, 1, 'TTF'],
  ] as const) {
    it(title, () => assert.equal(run(start, probes, failure, success), expected));
  }

  it('keeps reason and message of the last probe', () => {
    const verdict = nextVerdict(startingVerdict(true), bad, { failure: 3, success: 1 });
    assert.equal(verdict.reason, 'ConnectionRefused');
    assert.equal(verdict.message, 'no');
  });

  const cadence = { intervalMs: 30_000, share: 0.2 };
  const next = (verdict: Verdict, startedMs: number, tookMs: number, random = 0.5): number =>
    nextProbeAtMs(verdict, cadence, { startedMs, nowMs: startedMs + tookMs }, random) - startedMs;

  it('asks a healthy proxy once an interval, however long the probe took', () => {
    const healthy = startingVerdict(true);
    for (const tookMs of [1, 2_000, 20_000]) assert.equal(next(healthy, 36_000, tookMs), 30_000);
    // No earlier than it ended: probes of one address never overlap.
    assert.equal(next(healthy, 36_000, 31_000), 31_000);
  });

  it('brings one that was probed out of turn back to its own slot', () => {
    const healthy = startingVerdict(true);
    for (let startedMs = 0; startedMs < 60_000; startedMs += 1_700) {
      const pauseMs = next(healthy, startedMs, 10);
      assert.equal((startedMs + pauseMs) % 30_000, 6_000);
      assert.ok(pauseMs >= 15_000 && pauseMs < 45_000, String(pauseMs));
    }
  });

  it('asks one that is not healthy soon, then ever later, never later than its next slot', () => {
    const pauses = [1, 2, 3, 5, 50].map((failures) =>
      next({ ...startingVerdict(null), failures }, 36_000, 0),
    );
    assert.deepEqual(pauses, [2_000, 4_000, 8_000, 30_000, 30_000]);
    const one = { ...startingVerdict(null), failures: 1 };
    assert.equal(next(one, 36_000, 0, 0), 1_800);
    assert.ok(next(one, 36_000, 0, 0.999) < 2_200);
  });
});
