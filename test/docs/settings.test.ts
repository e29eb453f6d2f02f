import assert from 'node:assert/strict';
import { test } from 'node:test';
import { environmentName, type FlagTable } from '../../worker/runtime/env.ts';
import { controllerFlags, workerFlags } from '../../worker/runtime/flags.ts';
import { temporalDefaults } from '../../worker/runtime/temporalSettings.ts';
import { assertSameNames, filesOf, groupsIn, namesOf, pages, read, rowsOf, sectionOf, source } from '../support/pages.ts'; // prettier-ignore

const page = read('docs/configuration.md');
const controller: FlagTable = controllerFlags;
const worker: FlagTable = workerFlags;

function sourcesBelow(...folders: readonly string[]): string[] {
  return filesOf()
    .filter((path) => path.endsWith('.ts') && folders.some((folder) => path.startsWith(folder)))
    .map(source);
}

/** Names that our code takes from the environment; `material` reads two for each of its names. */
function variablesOf(texts: readonly string[]): string[] {
  return [
    ...groupsIn(texts, /\benv\[\s*'([A-Z_]+)'/g),
    ...groupsIn(texts, /\bmaterial\(env, '([A-Z_]+)'/g).flatMap((name) => [
      `${name}_PATH`,
      `${name}_DATA`,
    ]),
  ];
}

test('the table of flags says what the tables of the programs say, row by row', () => {
  const expected = Object.entries({ ...controller, ...worker }).map(([name, flag]) => {
    const of = name in controller ? (name in worker ? 'both' : 'controller') : 'worker';
    const value = flag.default === '' ? '' : `\`${flag.default}\``;
    return [`\`--${name}\``, of, value, flag.description].join(' | ');
  });
  const documented = rowsOf(sectionOf(page, '## Flags')).map((cells) => cells.join(' | '));
  assert.deepEqual(documented.sort(), expected.sort());
});

test('every variable of the operator that a page names belongs to a flag', () => {
  const known = Object.keys({ ...controller, ...worker }).map(environmentName);
  const named = groupsIn(
    pages.map(({ text }) => text),
    /\b(PROXY_OPERATOR_[A-Z_]+\b)/g,
  );
  assert.ok(named.length > 0);
  assert.deepEqual(
    named.filter((name) => !known.includes(name)),
    [],
  );
});

test('the other variables are those the programs read, and the one of the Kubernetes client', () => {
  const variables = variablesOf(sourcesBelow('worker/', 'controller/', 'activities/', 'api/'));
  assertSameNames(namesOf(sectionOf(page, '## Environment')), [...variables, 'KUBECONFIG']);
});

test("the defaults of Temporal's variables are those of the code", () => {
  const rows = rowsOf(sectionOf(page, '## Environment'));
  const defaultOf = (name: string): string | undefined =>
    rows.find(([cell]) => cell === `\`${name}\``)?.[1];
  assert.equal(defaultOf('TEMPORAL_ADDRESS'), `\`${temporalDefaults.address}\``);
  assert.equal(defaultOf('TEMPORAL_NAMESPACE'), `\`${temporalDefaults.namespace}\``);
});

test('testing.md names the variables that the local stack reads', () => {
  const { text } = read('docs/testing.md');
  const variables = variablesOf(sourcesBelow('deploy/dev/')).filter((name) => name !== 'PATH');
  assert.ok(variables.length > 0);
  for (const name of variables) assert.ok(text.includes(name), name);
});

test('the ports of the runbook are those of the flags', () => {
  const rows = rowsOf(sectionOf(read('docs/operations.md'), '## Ports'));
  const real = Object.entries({ ...controller, ...worker })
    .filter(([name]) => name.endsWith('-port'))
    .map(([, flag]) => flag.default);
  assertSameNames(
    rows.map(([port = '']) => port),
    real,
  );
});
