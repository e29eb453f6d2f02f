import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reasons } from '../../workflows/contract/errors.ts';
import { phases } from '../../workflows/contract/proxy.ts';
import { stepTraits } from '../../workflows/contract/stepTable.ts';
import { assertSameNames, groupsIn, headingsOf, read, sectionOf } from '../support/pages.ts';

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
