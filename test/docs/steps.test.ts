import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reasons } from '../../workflows/contract/errors.ts';
import { phases } from '../../workflows/contract/proxy.ts';
import { stepTraits } from '../../workflows/contract/stepTable.ts';
import { assertSameNames, exists, groupsIn, headingsOf, read, sectionOf, source } from '../support/pages.ts'; // prettier-ignore

const runbook = read('docs/operations.md');
const stuck = { path: runbook.path, text: sectionOf(runbook, '## Stuck in a step') };
const steps = Object.keys(stepTraits);

test('the runbook has a heading for every step, and for nothing that is none', () => {
  assertSameNames(headingsOf(stuck, 3), steps);
});

test('for every step the runbook says what shows where, what to do and when it is over', () => {
  for (const step of steps) {
    const labels = groupsIn([sectionOf(stuck, `### ${step}`)], /^- \*\*([^*]+)\*\*/gm);
    assert.deepEqual(labels, ['kubectl', 'Temporal', 'Do', 'Over when'], step);
  }
});

test('what the runbook calls a reason is one', () => {
  const shown = stuck.text.split('\n').filter((line) => line.startsWith('- **kubectl**'));
  const known = new Set<string>([...Object.keys(reasons), ...phases]);
  assert.deepEqual(
    groupsIn(shown, /`([A-Z]\w+)`/g).filter((name) => !known.has(name)),
    [],
  );
});

test('the tests of every step are in a file of its name, or where architecture.md says', () => {
  const [told = ''] =
    sectionOf(read('docs/architecture.md'), '## Where is…?').match(/^Tests of a step[^]*/m) ?? [];
  const named = groupsIn([told], /`(\w+\.test\.ts)`/g).map((name) => `test/steps/${name}`);
  for (const step of steps) {
    if (exists(`test/steps/${step}.test.ts`)) continue;
    assert.ok(told.includes(`\`${step}\``), step);
    const found = named.filter((file) => source(file).includes(`activities/${step}.ts'`));
    assert.notDeepEqual(found, [], step);
  }
});
