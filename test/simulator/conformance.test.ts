import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it, test } from 'node:test';
import { certificatesInMemory } from './certificates.ts';
import { runConformance } from './conformance/run.ts';
import type { Verdict } from './conformance/replay.ts';

/** Exchanges reproduced so far; only ever raised. */
const FLOOR = 922;

const checkout = new URL('../..', import.meta.url).pathname;
const known = readFileSync(new URL('conformance/differing.txt', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'));

describe('conformance with testdata/pve/9.2', () => {
  let verdicts: Verdict[] = [];
  before(async () => {
    verdicts = await runConformance(
      join(checkout, 'testdata/pve/9.2'),
      await certificatesInMemory(),
    );
  });

  it(`reproduces at least ${FLOOR} exchanges`, () => {
    const reproduced = verdicts.filter(({ verdict }) => verdict === 'reproduced').length;
    assert.ok(reproduced >= FLOOR, `${reproduced} reproduced, floor ${FLOOR}`);
  });

  it('differs nowhere but in the exchanges of conformance/differing.txt', () => {
    const fresh = verdicts
      .filter(({ verdict, name }) => verdict === 'differ' && !known.includes(name))
      .map(
        (verdict) =>
          `${verdict.name}: ${'differences' in verdict ? verdict.differences.join('; ') : ''}`,
      );
    assert.deepEqual(fresh, []);
  });

  it('names no exchange in conformance/differing.txt that it reproduces', () => {
    const solved = verdicts
      .filter(({ verdict, name }) => verdict !== 'differ' && known.includes(name))
      .map(({ name }) => name);
    assert.deepEqual(solved, []);
  });
});

test('npm run conformance writes no key to a disk, so one that is interrupted leaves none', () => {
  const program = join(checkout, 'test/simulator/conformance/main.ts');
  const withoutCaptures = join(checkout, 'test/simulator/conformance');
  const { stderr } = spawnSync(process.execPath, [program, withoutCaptures], {
    env: { ...process.env, TMPDIR: '/nowhere' },
    encoding: 'utf8',
  });
  assert.match(stderr, /^There is no capture in /);
});
