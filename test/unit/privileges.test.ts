/** Which privileges the token lacks, and what grants them. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { z } from 'zod';
import type { PermissionTable } from '../../activities/proxmox/api.ts';
import { grantMissing } from '../../activities/proxmox/grants.ts';
import {
  describeMissing,
  missingPrivileges,
  operatorPrivileges,
  seedPrivileges,
  type PrivilegeNeeds,
} from '../../activities/proxmox/privileges.ts';
import { everyNeed as needs } from '../support/privilegeNeeds.ts';
import { stepFixture } from '../support/stepFixture.ts';

/** A listing of the token's privileges. */
function tableOf(paths: Record<string, readonly string[]>, passedOn = true): PermissionTable {
  return new Map(
    Object.entries(paths).map(([path, held]) => [
      path,
      new Map(held.map((one) => [one, passedOn])),
    ]),
  );
}

function rolesWithout(...privileges: string[]): PermissionTable {
  const without = (all: readonly string[]): string[] =>
    all.filter((one) => !privileges.includes(one));
  return tableOf({
    '/': without(operatorPrivileges),
    '/storage/proxy-seeds': without(seedPrivileges),
  });
}

function missing(table: PermissionTable, changes: Partial<PrivilegeNeeds> = {}): string {
  return describeMissing(missingPrivileges(table, { ...needs, ...changes }));
}

describe('privileges of the token', () => {
  it("nothing is missing with the guide's two roles", () => {
    assert.equal(missing(rolesWithout()), '');
    assert.equal(missing(rolesWithout(), { storage: 'local-lvm' }), '');
  });

  it('every privilege of the two roles is missed when it is not there, but those that others stand in for', () => {
    const standIns = ['Datastore.Audit', 'Datastore.AllocateSpace'];
    for (const privilege of new Set([...operatorPrivileges, ...seedPrivileges])) {
      if (standIns.includes(privilege)) continue;
      assert.match(missing(rolesWithout(privilege)), new RegExp(`^${privilege}\\b`), privilege);
    }
    const seedsUnseen = /Datastore\.Audit or Datastore\.AllocateSpace on \/storage\/proxy-seeds/;
    assert.match(missing(rolesWithout(...standIns)), seedsUnseen);
  });

  it('a path is named with every privilege', () => {
    const none = missing(new Map());
    for (const part of [
      'Sys.Audit on /nodes/pve1',
      'VM.Clone on /vms/9001',
      'VM.Audit on /vms',
      'VM.Allocate on /vms/100000',
      'VM.GuestAgent.Audit or VM.GuestAgent.Unrestricted on /vms/100000',
      'Datastore.AllocateSpace on /storage',
      'Datastore.Allocate on /storage/proxy-seeds',
      'SDN.Use on /sdn/zones/localnetwork',
    ]) {
      assert.ok(none.split(', ').includes(part), part);
    }
  });

  it('what the config does not make the operator do needs no privilege', () => {
    const table = rolesWithout('VM.Config.Network', 'VM.Config.Disk');
    assert.equal(missing(table, { network: false, resize: false }), '');
    assert.match(missing(table, { network: false }), /^VM\.Config\.Disk on \/vms\/100000$/);
  });

  it('a privilege that is not passed on does not count for paths below', () => {
    const table = tableOf({ '/': operatorPrivileges }, false);
    assert.match(missing(table), /VM\.Allocate on \/vms\/100000/);
  });

  it('an entry on a deeper path replaces what it would inherit', () => {
    const table = tableOf({
      '/': operatorPrivileges,
      '/storage/proxy-seeds': ['Datastore.Allocate'],
    });
    assert.equal(
      missing(table),
      'Datastore.AllocateTemplate on /storage/proxy-seeds, Datastore.Audit or Datastore.AllocateSpace on /storage/proxy-seeds',
    );
  });

  it('one bridge of the network is enough, since the bridge of a template is not known here', () => {
    const table = new Map([
      ...rolesWithout('SDN.Use'),
      ...tableOf({ '/sdn/zones/dmz/net1': ['SDN.Use'] }),
    ]);
    assert.equal(missing(table), '');
  });

  it('Proxmox VE 8 wants VM.Monitor for the guest agent', () => {
    assert.equal(missing(rolesWithout(), { pveVersion: '8.4.1' }), 'VM.Monitor on /vms/100000');
  });

  it('each role is extended where the guide grants it, and a token with privilege separation is named', () => {
    const lacking = missingPrivileges(rolesWithout('VM.Clone', 'Datastore.Allocate'), needs);
    const who = "--users proxy-operator@pve --tokens 'proxy-operator@pve!operator'";
    assert.equal(
      grantMissing(lacking, 'proxy-seeds', 'proxy-operator@pve!operator'),
      `pveum role modify ProxyOperator --append 1 --privs "VM.Clone" && pveum acl modify / ${who} --roles ProxyOperator; ` +
        `pveum role modify ProxyOperatorSeeds --append 1 --privs "Datastore.Allocate" && pveum acl modify /storage/proxy-seeds ${who} --roles ProxyOperatorSeeds`,
    );
  });

  it("the simulator's operator has exactly the guide's roles", () => {
    const schema = z.object({
      roles: z.array(z.object({ id: z.string(), privileges: z.array(z.string()) })),
    });
    const text = readFileSync('test/simulator/fixtures/local.yaml', 'utf8');
    for (const { roles } of [schema.parse(parse(text)), schema.parse(stepFixture())]) {
      const held = (id: string): string[] | undefined =>
        roles.find((role) => role.id === id)?.privileges.toSorted();
      assert.deepEqual(held('ProxyOperator'), operatorPrivileges.toSorted());
      assert.deepEqual(held('ProxyOperatorSeeds'), seedPrivileges.toSorted());
    }
  });
});
