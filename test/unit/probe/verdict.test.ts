import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ProbeOutcome } from '../../../activities/probe/probe.ts';
import { nextProbeInMs, nextVerdict, startingVerdict } from '../../../activities/probe/verdict.ts';
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

  it('asks a healthy proxy every interval, give or take a tenth', () => {
    const healthy = startingVerdict(true);
    assert.equal(nextProbeInMs(healthy, 30_000, 0.5), 30_000);
    assert.equal(nextProbeInMs(healthy, 30_000, 0), 27_000);
    assert.ok(nextProbeInMs(healthy, 30_000, 0.999) < 33_000);
  });

  it('asks one that is not healthy soon, then ever later, never later than the interval', () => {
    const pauses = [1, 2, 3, 5, 50].map((failures) =>
      nextProbeInMs({ ...startingVerdict(null), failures }, 30_000, 0.5),
    );
    assert.deepEqual(pauses, [2_000, 4_000, 8_000, 30_000, 30_000]);
  });
});
