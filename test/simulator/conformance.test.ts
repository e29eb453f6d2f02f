import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { makeCertificates } from './certificates.ts';
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
  const directory = mkdtempSync(join(tmpdir(), 'conformance-'));
  before(async () => {
    verdicts = await runConformance(
      join(checkout, 'testdata/pve/9.2'),
      await makeCertificates(directory),
    );
  });
  after(() => {
    rmSync(directory, { recursive: true, force: true });
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
