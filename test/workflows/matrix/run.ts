/** Runs cells of the matrix outside the test runner and prints the table: the long product of faults and disturbances. */
import { parseArgs } from 'node:util';
import {
  cellName,
  columnOf,
  columnsOf,
  productOf,
  rowsOf,
  sums,
  type PlannedCell,
} from './cells.ts';
import { openDesk, type Desk } from './desk.ts';
import { createReport, type Report } from './report.ts';
import { tellCell } from './tell.ts';

/** Exit code: 1 when a cell failed. */
export async function runMatrix(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      filter: { type: 'string', default: '' },
      sums: { type: 'boolean', default: false },
      'at-once': { type: 'string', default: '8' },
    },
  });
  const planned = (values.sums ? sums() : productOf()).filter(({ cell }) =>
    new RegExp(values.filter).test(cellName(cell)),
  );
  const report = createReport(rowsOf(planned), columnsOf(planned));
  for (const { cell, why } of planned) {
    if (why !== null) report.note(cell.row, columnOf(cell), { kind: 'notApplicable', why });
  }
  const toTell = planned.filter(({ why }) => why === null);
  const startedMs = Date.now();
  const desk = await openDesk();
  let failed = 0;
  try {
    const next = toTell.values();
    const lane = async (): Promise<void> => {
      for (const one of next) failed += await tellAndNote(desk, one, report);
    };
    await Promise.all(Array.from({ length: Number(values['at-once']) }, lane));
  } finally {
    await desk.close();
  }
  const seconds = Math.round((Date.now() - startedMs) / 1000);
  process.stdout.write(`\n${report.text()}; ${toTell.length} stories in ${seconds} s\n`);
  return failed === 0 ? 0 : 1;
}

async function tellAndNote(desk: Desk, { cell }: PlannedCell, report: Report): Promise<number> {
  const startedMs = Date.now();
  const done = (text: string): void => {
    const ms = Date.now() - startedMs;
    process.stdout.write(`${text} ${cellName(cell)} (${(ms / 1000).toFixed(1)} s)\n`);
  };
  try {
    const read = await tellCell(desk, cell);
    report.note(cell.row, columnOf(cell), {
      kind: 'ok',
      note: read?.reason ?? '',
    });
    done('ok');
    return 0;
  } catch (error) {
    report.note(cell.row, columnOf(cell), { kind: 'failed' });
    done('FAILED');
    process.stdout.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    return 1;
  }
}
