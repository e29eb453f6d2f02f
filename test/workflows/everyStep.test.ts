/**
 * Every step, with everything that can happen to it: the real workflow, steps and client on the simulator, in scaled
 * time. `npm run matrix` tells the longer stories, in which two things happen at once.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { scaleTime } from './matrix/scaledTime.ts';

scaleTime();
const { stepTraits } = await import('../../workflows/contract/stepTable.ts');
const { cellName, columnOf, columnsOf, rowsOf, sums } = await import('./matrix/cells.ts');
const { openDesk } = await import('./matrix/desk.ts');
const { createReport } = await import('./matrix/report.ts');
const { leftOut, rows } = await import('./matrix/rows.ts');
const { tellCell } = await import('./matrix/tell.ts');

/** Most of a story's time is waiting, so many go side by side. */
const storiesAtOnce = 10;

describe('every step', () => {
  it('has a row in the matrix, or a reason for having none', () => {
    const inRows = new Set(Object.values(rows).map(({ step }) => step));
    const known = [...inRows, ...Object.keys(leftOut)].sort();
    assert.deepEqual(known, Object.keys(stepTraits).sort());
  });
});

describe('every step', { concurrency: storiesAtOnce }, () => {
  let desk: Awaited<ReturnType<typeof openDesk>>;
  const planned = sums();
  const report = createReport(rowsOf(planned), columnsOf(planned));

  before(async () => {
    desk = await openDesk();
  });
  after(async () => {
    process.stdout.write(`${report.text()}\n`);
    try {
      process.stdout.write(`${await desk.replay()} runs replayed\n`);
    } finally {
      await desk.close();
    }
  });

  for (const { cell, why } of planned) {
    if (why !== null) {
      report.note(cell.row, columnOf(cell), { kind: 'notApplicable', why });
      continue;
    }
    it(cellName(cell), async () => {
      report.note(cell.row, columnOf(cell), { kind: 'failed' });
      const read = await tellCell(desk, cell);
      report.note(cell.row, columnOf(cell), { kind: 'ok', note: read?.reason ?? '' });
    });
  }
});
