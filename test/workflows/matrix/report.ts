/** The matrix as a table: steps down, columns across. */

export type Outcome =
  { kind: 'ok'; note: string } | { kind: 'failed' } | { kind: 'notApplicable'; why: string };

export interface Report {
  note: (step: string, column: string, outcome: Outcome) => void;
  /** Markdown: the table, the reasons for what does not apply, and the sums. */
  text: () => string;
}

export function createReport(columns: readonly string[]): Report {
  const cells = new Map<string, Map<string, Outcome>>();
  return {
    note: (step, column, outcome) => {
      const row = cells.get(step) ?? new Map<string, Outcome>();
      cells.set(step, row.set(column, outcome));
    },
    text: () => {
      const reasons = [
        ...new Set(
          outcomes(cells).flatMap((one) => (one.kind === 'notApplicable' ? [one.why] : [])),
        ),
      ];
      const shown = (outcome: Outcome | undefined): string => {
        if (outcome === undefined) return '';
        if (outcome.kind === 'notApplicable') return `${reasons.indexOf(outcome.why) + 1}`;
        return outcome.kind === 'failed' ? '**failed**' : `ok${outcome.note}`;
      };
      const steps = [...cells.keys()];
      const head = ['', ...steps];
      const lines = columns.map((column) => [
        column,
        ...steps.map((step) => shown(cells.get(step)?.get(column))),
      ]);
      const all = outcomes(cells);
      const count = (kind: Outcome['kind']): number =>
        all.filter((one) => one.kind === kind).length;
      return [
        tableOf([head, ...lines]),
        '',
        ...reasons.map((reason, index) => `${index + 1}: does not apply — ${reason}.`),
        '',
        `${count('ok')} ok, ${count('failed')} failed, ${count('notApplicable')} not applicable`,
      ].join('\n');
    },
  };
}

function outcomes(cells: ReadonlyMap<string, ReadonlyMap<string, Outcome>>): Outcome[] {
  return [...cells.values()].flatMap((row) => [...row.values()]);
}

function tableOf([head = [], ...lines]: string[][]): string {
  const widths = head.map((_, index) =>
    Math.max(3, ...[head, ...lines].map((line) => line[index]?.length ?? 0)),
  );
  const render = (line: string[]): string =>
    `| ${widths.map((width, index) => (line[index] ?? '').padEnd(width)).join(' | ')} |`;
  return [
    render(head),
    render(widths.map((width) => '-'.repeat(width))),
    ...lines.map(render),
  ].join('\n');
}
