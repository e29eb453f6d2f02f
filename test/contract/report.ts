import type { Proof, Quiet, Section, Statement, TestRef } from './statement.ts';

/** Tests that a proof names. */
export function testsOf(proof: Proof): readonly TestRef[] {
  return proof.kind === 'proven' || proof.kind === 'changed' ? proof.tests : [];
}

/** `52` or `52-54`. */
export function placeOf({ line, to = line }: Statement | Quiet): string {
  return to === line ? String(line) : `${line}-${to}`;
}

/** Every statement, by section, with what proves it; with `only` those of that kind. */
export function table(sections: readonly Section[], only?: Proof['kind']): string {
  return sections
    .map((section) => {
      const rows = section.statements.filter(({ proof }) => proof.kind === (only ?? proof.kind));
      const head = `${section.title} (${section.from}-${section.to}): ${counts(section.statements)}`;
      return [head, ...rows.flatMap(linesOf)].join('\n');
    })
    .join('\n\n');
}

function linesOf(entry: Statement): string[] {
  const indent = ' '.repeat(11);
  const named = testsOf(entry.proof).map(({ file, title }) => `${file}: ${title}`);
  return [
    `${placeOf(entry).padStart(9)}  ${entry.statement}`,
    ...[...remarksOn(entry.proof), ...named].map((text) => indent + text),
  ];
}

function remarksOn(proof: Proof): string[] {
  if (proof.kind === 'changed') return [`changed: ${proof.instead} (${proof.source})`];
  if (proof.kind === 'nonGoal') return [`not ours: ${proof.why}`];
  return [];
}

/** `12 statements: 9 proven, 2 changed on purpose, 1 not ours`. */
export function counts(statements: readonly Statement[]): string {
  const of = (kind: Proof['kind']): number =>
    statements.filter(({ proof }) => proof.kind === kind).length;
  return `${statements.length} statements: ${of('proven')} proven, ${of('changed')} changed on purpose, ${of('nonGoal')} not ours`;
}

/** Lines of the page, by number, that are not blank and that no entry of its section covers. */
export function uncovered(
  page: string,
  sections: readonly Section[],
): { line: number; text: string }[] {
  const covered = new Set<number>();
  for (const { statements, quiet } of sections) {
    for (const { line, to = line } of [...statements, ...quiet]) {
      for (let at = line; at <= to; at++) covered.add(at);
    }
  }
  return page
    .split('\n')
    .map((text, index) => ({ line: index + 1, text }))
    .filter(({ line, text }) => text.trim() !== '' && !covered.has(line));
}
