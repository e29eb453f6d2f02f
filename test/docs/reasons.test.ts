import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorClasses, reasons, targetReasons } from '../../workflows/contract/errors.ts';
import { probeReasons } from '../../workflows/contract/messages.ts';
import { assertSameNames, filesOf, groupsIn, namesOf, read, rowsOf, sectionOf, source } from '../support/pages.ts'; // prettier-ignore

const errors = read('docs/errors.md');
const lifecycle = read('docs/lifecycle.md');
const conditions = source('workflows/conditions.ts');
const workflows = filesOf()
  .filter((path) => /^workflows\/[^/]+\.ts$/.test(path))
  .map(source);

/** An argument of `addEvent`, or a field of an Event that is built by hand. */
const eventReasons = [
  ...groupsIn(workflows, /addEvent\(\s*[\w.]+,\s*'(?:Normal|Warning)',\s*'(\w+)'/g),
  ...groupsIn(workflows, /type: '(?:Normal|Warning)', reason: '(\w+)'/g),
];
const conditionTypes = groupsIn([conditions], /condition\(\s*'(\w+)'/g);
/** Third argument of `condition`, and every other name that is no type, status, class or mode. */
const conditionReasons = [
  ...groupsIn([conditions], /condition\(\s*'\w+',\s*'\w+',\s*'(\w+)'/g),
  ...groupsIn([conditions], /'([A-Z][a-z]\w*)'/g).filter(
    (name) =>
      ![...conditionTypes, ...errorClasses, 'True', 'False', 'Unknown', 'External'].includes(name),
  ),
];
const configReasons = groupsIn(
  source('worker/configState.ts').match(/^.*reason: .*$/gm) ?? [],
  /'([A-Z]\w+)'/g,
);

test('there are event, condition and config reasons to compare', () => {
  for (const found of [eventReasons, conditionReasons, configReasons]) assert.ok(found.length >= 2);
});

test('every reason of a failure has its row in errors.md, and every row its reason', () => {
  const titles = [
    'Placement and spec',
    'Credentials and connection',
    'VMIDs and ownership',
    'Waiting',
    'Deletion',
    'The rest',
  ];
  assertSameNames(
    titles.flatMap((title) => namesOf(sectionOf(errors, `## ${title}`))),
    Object.keys(reasons),
  );
});

test('every reason of a probe has its row, and every row its reason', () => {
  assertSameNames(namesOf(sectionOf(errors, '## Probes')), probeReasons);
});

test('every reason of a target has its row, and every row its reason', () => {
  assertSameNames(namesOf(sectionOf(errors, '## Targets')), targetReasons);
});

test('every other reason of a condition or an event has its row, and every row its reason', () => {
  const explained = new Set<string>([...Object.keys(reasons), ...probeReasons]);
  const emitted = [...conditionReasons, ...eventReasons, ...configReasons];
  assertSameNames(
    namesOf(sectionOf(errors, '## Conditions and events')),
    emitted.filter((name) => !explained.has(name)),
  );
});

test('every row says what the reason means and where to look', () => {
  for (const [reason, ...rest] of rowsOf(errors.text)) {
    assert.ok(rest.length === 2 && rest.every((cell) => cell.length >= 8), reason);
  }
});

test('every class of failure is explained', () => {
  const [start = ''] = errors.text.split('\n## ');
  const classes = rowsOf(start).map(([name = '']) => name.replace(/,.*/, ''));
  assertSameNames([...new Set(classes)], errorClasses);
});

test('lifecycle.md has the conditions of the code, with all reasons of their own', () => {
  const rows = rowsOf(sectionOf(lifecycle, '## Conditions'));
  assertSameNames(
    groupsIn(
      rows.map(([type = '']) => type),
      /`(\w+)`/g,
    ),
    conditionTypes,
  );
  const named = groupsIn(
    rows.map(([, , cell = '']) => cell),
    /`(\w+)`/g,
  );
  assertSameNames([...new Set(named)], conditionReasons);
});
