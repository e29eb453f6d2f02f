/** Runs cells of the matrix outside the test runner and prints the table: the long product of faults and disturbances. */
import { UserError } from '../../../deploy/dev/program.ts';
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

export interface MatrixOptions {
  /** Of the sentences of cells, such as «startVm fails with 595, once». */
  filter: RegExp;
  /** One fault or disturbance at a time. */
  sums: boolean;
  /** Stories side by side. */
  atOnce: number;
}

/** Exit code: 1 when a cell failed. Throws UserError when no story is to be told. */
export async function runMatrix(options: MatrixOptions): Promise<number> {
  const { filter } = options;
  const all = options.sums ? sums() : productOf();
  const planned = all.filter(({ cell }) => filter.test(cellName(cell)));
  const [example] = all;
  if (planned.length === 0 && example !== undefined)
    throw new UserError(
      `None of the ${all.length} cells fits ${String(filter)}; one of them is «${cellName(example.cell)}».`,
    );
  const report = createReport(rowsOf(planned), columnsOf(planned));
  for (const { cell, why } of planned) {
    if (why !== null) report.note(cell.row, columnOf(cell), { kind: 'notApplicable', why });
  }
  const toTell = planned.filter(({ why }) => why === null);
  if (toTell.length === 0)
    throw new UserError(
      `None of the ${planned.length} cells that fit ${String(filter)} applies: ${planned[0]?.why ?? ''}.`,
    );
  const startedMs = Date.now();
  const desk = await openDesk();
  let failed = 0;
  try {
    const next = toTell.values();
    const lane = async (): Promise<void> => {
      for (const one of next) failed += await tellAndNote(desk, one, report);
    };
    await Promise.all(Array.from({ length: options.atOnce }, lane));
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
