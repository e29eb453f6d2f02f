import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitBudgets } from '../../workflows/contract/budgets.ts';
import { phases } from '../../workflows/contract/proxy.ts';
import { assertSameNames, fencesOf, groupsIn, namesOf, read, rowsOf, sectionOf, source, tablesOf } from '../support/pages.ts'; // prettier-ignore

const page = read('docs/lifecycle.md');
const section = sectionOf(page, '## Phases');
const graph = fencesOf(page).find(({ language }) => language === 'mermaid')?.text ?? '';
const question = source('workflows/nextMove.ts');

interface Transition {
  from: string;
  to: string;
}
const drawn: Transition[] = [...graph.matchAll(/^ {2}(\S+) --> (\S+): /gm)].map(
  ([, from = '', to = '']) => ({ from, to }),
);
const listed: Transition[] = rowsOf(section)
  .filter((cells) => cells.length === 3)
  .flatMap(([left = '', right = '']) =>
    phasesIn(left).flatMap((from) => phasesIn(right).map((to) => ({ from, to }))),
  );

/** A cell of the table of transitions; what begins with a parenthesis is the graph's start or end. */
function phasesIn(cell: string): string[] {
  if (cell.startsWith('(')) return ['[*]'];
  if (cell === 'any') return phases.filter((phase) => phase !== 'Deleting');
  return groupsIn([cell], /`(\w+)`/g);
}

test('every phase is explained, in the order a Proxy goes through them', () => {
  const explained = rowsOf(section).filter((cells) => cells.length === 2);
  assert.deepEqual(
    explained.map(([name]) => name),
    phases.map((phase) => `\`${phase}\``),
  );
});

test('the graph shows the phases of the code and no others', () => {
  const ends = drawn.flatMap(({ from, to }) => [from, to]).filter((end) => end !== '[*]');
  assertSameNames([...new Set(ends)], phases);
});

test('every transition of the graph is in the table, with its cause, and the other way round', () => {
  const named = ({ from, to }: Transition): string => `${from} ${to}`;
  assertSameNames(drawn.map(named), listed.map(named));
});

test('every move of the main loop is explained, and no other', () => {
  const [, union = ''] = /export type Move =([\s\S]*?);\n\n/.exec(question) ?? [];
  const [moves = ''] = tablesOf(sectionOf(page, '## What next?'));
  assertSameNames(namesOf(moves), groupsIn([union], /kind: '(\w+)'/g));
});

test('every reason to park is explained, and no other', () => {
  const [, parks = ''] = tablesOf(sectionOf(page, '## What next?'));
  const calls = groupsIn([question], /park\(([^()]*)\)/g);
  assertSameNames(namesOf(parks), groupsIn(calls, /'(\w+)'/g));
});

test('the time budgets are those of the code', () => {
  const documented = rowsOf(sectionOf(page, '## Time budgets')).map(
    ([name = '', time = '']) => `${name} ${/^\d+ min/.exec(time)?.[0] ?? time}`,
  );
  const real = Object.entries(waitBudgets).map(([name, ms]) => `\`${name}\` ${ms / 60_000} min`);
  assertSameNames(documented, real);
});
