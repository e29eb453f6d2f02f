/**
 * Two installations on one cluster, under random deeds of users and administrators, in scaled time. `npm run walk` goes on
 * for longer, and repeats a walk that failed.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { scaleTime } from './matrix/scaledTime.ts';

scaleTime();
const { describeFigures, runWalks } = await import('./walk/run.ts');
const { prepareGround } = await import('./walk/server.ts');

/**
 * Three hundred operations together; each walk has a Temporal and a cluster of its own. The same walks each time: a change is to be
 * judged by what it does, not by what it happens to meet. `npm run walk` goes where nobody was.
 */
const seeds = [1, 2, 3];
const length = 100;

describe('two installations on one cluster', () => {
  let ground: Awaited<ReturnType<typeof prepareGround>>;
  before(async () => {
    ground = await prepareGround();
  });
  after(() => ground.close());

  for (const seed of seeds) {
    it(`touch nothing of each other and nothing made by hand, whatever users and administrators do: seed ${seed}`, async () => {
      const figures = await runWalks(ground, { operations: length, length, seed });
      assert.equal(figures.operations, length);
      // A walk in which nothing is made proves nothing.
      assert.ok(figures.clones > 3 && figures.writes > 15, describeFigures(figures));
    });
  }
});
