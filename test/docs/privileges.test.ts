/** One list of privileges: activities/proxmox/privileges.ts. test/unit/privileges.test.ts holds the simulator's roles against it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { z } from 'zod';
import { grantMissing } from '../../activities/proxmox/grants.ts';
import {
  missingPrivileges,
  operatorPrivileges,
  seedPrivileges,
} from '../../activities/proxmox/privileges.ts';
import { assertSameNames, fencesOf, groupsIn, read, source } from '../support/pages.ts';
import { everyNeed } from '../support/privilegeNeeds.ts';

const guide = read('docs/proxmox.md');
const commands = fencesOf(guide).map(({ text }) => text);
const roles = [...commands.join('\n').matchAll(/^pveum role add (\S+) -privs "([^"]+)"$/gm)].map(
  ([, role = '', privileges = '']) => ({ role, privileges: privileges.split(' ') }),
);
const grants = [
  ...commands.join('\n').matchAll(/^pveum aclmod (\S+) -user (\S+) -role (\S+)$/gm),
].map(([, path = '', user = '', role = '']) => ({ path, user, role }));

test('the guide makes the two roles with exactly the privileges that are checked and asked for', () => {
  assert.deepEqual(
    roles.map(({ role }) => role),
    ['ProxyOperator', 'ProxyOperatorSeeds'],
  );
  assertSameNames(roles[0]?.privileges ?? [], operatorPrivileges);
  assertSameNames(roles[1]?.privileges ?? [], seedPrivileges);
});

test('the guide grants each role on the path, and to the user, that a remedy for a missing privilege names', () => {
  const user = grants[0]?.user ?? '';
  const token = `${user}!${groupsIn(commands, /^pveum user token add \S+ (\S+) /gm)[0]}`;
  const remedy = grantMissing(missingPrivileges(new Map(), everyNeed), everyNeed.isoStorage, token);
  assert.deepEqual(
    grants.map(({ path, role }) => `${path} ${role}`),
    [...remedy.matchAll(/pveum acl modify (\S+) .*?--roles (\w+)/g)].map(
      ([, path = '', role = '']) => `${path} ${role}`,
    ),
  );
  assert.ok(grants.every((grant) => grant.user === user));
  assert.ok(remedy.includes(`--users ${user} --tokens '${token}'`));
});

test("the simulator's cluster grants the guide's roles where the guide does, to the guide's user", () => {
  const { acls } = z
    .object({
      acls: z.array(z.object({ path: z.string(), principal: z.string(), role: z.string() })),
    })
    .parse(parse(source('test/simulator/fixtures/local.yaml')));
  for (const { path, user, role } of grants)
    assert.ok(
      acls.some((acl) => acl.path === path && acl.principal === user && acl.role === role),
      `${role} on ${path}`,
    );
});

test('the check in the guide is the program of that name, with variables it knows', () => {
  assert.ok(commands.some((text) => text.includes('make check-proxmox')));
  const variables = groupsIn(commands, /\b(PROXMOX_[A-Z_]+)=/g);
  const known = groupsIn([source('test/pve/settings.ts')], /(PROXMOX_[A-Z_]+)/g);
  assert.ok(variables.length > 2);
  assert.deepEqual(
    variables.filter((name) => !known.includes(name)),
    [],
  );
});
