import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertSameNames, groupsIn, namesOf, read, sectionOf, source } from '../support/pages.ts';

const page = sectionOf(read('docs/operations.md'), '## Health of a provider');

test('the runbook lists the details a check may gather, and no others', () => {
  const gathered = groupsIn([source('activities/checkNode.ts')], /details\['(\w+)'\]/g);
  assert.ok(gathered.length >= 7);
  assertSameNames(namesOf(page), [...new Set(gathered)]);
});
