/** Which cells the matrix has: the sums (every fault, every disturbance) and the product of both lists. */
import { disturbances, type Disturbance } from './disturbances.ts';
import { cannotMeet, faults, type Fault } from './faults.ts';
import { rows, type RowName } from './rows.ts';
import type { Cell } from './tell.ts';

/** A cell, or why it does not apply. */
export interface PlannedCell {
  cell: Cell;
  why: string | null;
}

/**
 * The default matrix: each fault once, each disturbance, each fault of a main request until it is lifted. How a step
 * says that it waits does not hang on which of its requests it waits for.
 */
export function sums(): PlannedCell[] {
  return steps().flatMap((step) => [
    plan(step, null, false, null),
    ...faults.map((fault) => plan(step, fault, false, null)),
    ...faults.filter(isOfMainRequest).map((fault) => plan(step, fault, true, null)),
    ...disturbances.map((disturbance) => plan(step, null, false, disturbance)),
  ]);
}

/** Every fault of a main request, once and lasting, together with every disturbance. */
export function productOf(): PlannedCell[] {
  return steps().flatMap((step) =>
    faults
      .filter(isOfMainRequest)
      .flatMap((fault) =>
        [false, true].flatMap((lasting) =>
          disturbances.map((disturbance) => plan(step, fault, lasting, disturbance)),
        ),
      ),
  );
}

function isOfMainRequest(fault: Fault): boolean {
  return fault.kind === 'kubernetes' || fault.request === 'main';
}

function steps(): RowName[] {
  return Object.keys(rows).filter((name): name is RowName => name in rows);
}

function plan(
  name: RowName,
  fault: Fault | null,
  lasting: boolean,
  disturbance: Disturbance | null,
): PlannedCell {
  const row = rows[name];
  const why =
    (fault === null ? null : cannotMeet(fault, row)) ??
    disturbance?.cannotMeet(row) ??
    (fault === null ? null : (disturbance?.forestalls(row) ?? null));
  return { cell: { row: name, fault, lasting, disturbance }, why };
}

/** The column's heading. */
export function columnOf({ fault, lasting, disturbance }: Cell): string {
  const parts = [
    fault === null ? null : `${fault.name}${lasting ? ', lasting' : ', once'}`,
    disturbance?.name ?? null,
  ].filter((part) => part !== null);
  return parts.length === 0 ? 'nothing' : parts.join(' + ');
}

export function columnsOf(planned: readonly PlannedCell[]): string[] {
  return [...new Set(planned.map(({ cell }) => columnOf(cell)))];
}

export function rowsOf(planned: readonly PlannedCell[]): RowName[] {
  return [...new Set(planned.map(({ cell }) => cell.row))];
}

/** A sentence about the story. */
export function cellName(cell: Cell): string {
  return `${cell.row} survives ${columnOf(cell)}`;
}
