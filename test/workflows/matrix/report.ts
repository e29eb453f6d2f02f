/** The matrix as a table: steps down, columns across. */

export type Outcome =
  { kind: 'ok'; note: string } | { kind: 'failed' } | { kind: 'notApplicable'; why: string };

export interface Report {
  note: (step: string, column: string, outcome: Outcome) => void;
  /** Markdown: the table, the reasons for what does not apply, and the sums. */
  text: () => string;
}

export function createReport(steps: readonly string[], columns: readonly string[]): Report {
  const cells = new Map<string, Map<string, Outcome>>();
  return {
    note: (step, column, outcome) => {
      const row = cells.get(step) ?? new Map<string, Outcome>();
      cells.set(step, row.set(column, outcome));
    },
    text: () => {
      const all = outcomes(cells);
      const whys = distinct(all.flatMap((one) => (one.kind === 'notApplicable' ? [one.why] : [])));
      const notes = distinct(all.flatMap((one) => (one.kind === 'ok' ? [one.note] : []))).filter(
        (note) => note !== '',
      );
      const shown = (outcome: Outcome | undefined): string => {
        if (outcome === undefined) return '';
        if (outcome.kind === 'notApplicable') return String(whys.indexOf(outcome.why) + 1);
        if (outcome.kind === 'failed') return '**failed**';
        return outcome.note === '' ? 'ok' : `ok ${letter(notes.indexOf(outcome.note))}`;
      };
      const lines = columns.map((column) => [
        column,
        ...steps.map((step) => shown(cells.get(step)?.get(column))),
      ]);
      const count = (kind: Outcome['kind']): number =>
        all.filter((one) => one.kind === kind).length;
      return [
        tableOf([['', ...steps], ...lines]),
        '',
        ...whys.map((why, index) => `- ${index + 1}: does not apply, ${why}`),
        ...notes.map((note, index) => `- ${letter(index)}: the status said ${note} meanwhile`),
        '',
        `${count('ok')} ok, ${count('failed')} failed, ${count('notApplicable')} not applicable`,
      ].join('\n');
    },
  };
}

function distinct(texts: readonly string[]): string[] {
  return [...new Set(texts)].sort();
}

function letter(index: number): string {
  return String.fromCharCode('a'.charCodeAt(0) + index);
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
