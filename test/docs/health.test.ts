import assert from 'node:assert/strict';
import { test } from 'node:test';
import { operatorPrivileges, seedPrivileges } from '../../activities/proxmox/privileges.ts';
import { assertSameNames, groupsIn, namesOf, read, sectionOf, source } from '../support/pages.ts';

const page = sectionOf(read('docs/operations.md'), '## Health of a provider');

test('the runbook lists the details a check may gather, and no others', () => {
  const gathered = groupsIn([source('activities/checkNode.ts')], /details\['(\w+)'\]/g);
  assert.ok(gathered.length >= 7);
  assertSameNames(namesOf(page), [...new Set(gathered)]);
});

test('the guide makes the two roles whose privileges the check of a provider compares', () => {
  const guide = read('docs/proxmox.md').text;
  for (const [role, privileges] of [
    ['ProxyOperator', operatorPrivileges],
    ['ProxyOperatorSeeds', seedPrivileges],
  ] as const) {
    const [, listed = ''] = new RegExp(`role add ${role} -privs "([^"]+)"`).exec(guide) ?? [];
    assertSameNames(listed.split(' '), privileges);
  }
});
