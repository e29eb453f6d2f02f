/** Privileges the token lacks: told by the check of a node, all at once, before any VM is made. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { FixtureInput } from '../simulator/fixture.ts';
import { expectReason, withChecks } from '../support/healthRig.ts';
import { stepFixture, tokenSecret } from '../support/stepFixture.ts';

describe('privileges of the token', () => {
  function rolesWithout(privilege: string): FixtureInput {
    const { roles = [] } = stepFixture();
    return stepFixture({
      roles: roles.map(({ id, privileges }) => ({
        id,
        privileges: privileges.filter((one) => one !== privilege),
      })),
    });
  }

  it('Forbidden: all that is missing, with the lines that grant it, before any VM is made', () =>
    withChecks(
      async (rig, { check }) => {
        const target = await check();
        expectReason(target, 'Forbidden', /lacks Datastore\.Allocate on \/storage\/proxy-seeds; pveum role modify ProxyOperatorSeeds --append 1 --privs "Datastore\.Allocate" && pveum acl modify \/storage\/proxy-seeds/); // prettier-ignore
        assert.equal(
          target.details['missingPrivileges'],
          'Datastore.Allocate on /storage/proxy-seeds',
        );
        assert.equal(target.details['templates'], '1/1');
        assert.deepEqual(rig.sent('POST', /./), []);
      },
      { fixture: rolesWithout('Datastore.Allocate') },
    ));

  it('a refused request is explained by the whole list, too', () =>
    withChecks(
      async (_rig, { check }) => {
        const target = await check();
        expectReason(target, 'Forbidden', /lacks Sys\.Audit on \/nodes\/pve1;/);
        assert.equal(target.details['kernel'], undefined);
      },
      { fixture: rolesWithout('Sys.Audit') },
    ));

  it('a template that the token may not see is not called missing', () =>
    withChecks(
      async (_rig, { check }) => {
        const target = await check();
        expectReason(target, 'Forbidden', /VM\.Audit on \/vms\/9001/);
        assert.equal(target.details['templates'], '0/1');
      },
      { fixture: rolesWithout('VM.Audit') },
    ));

  it('a token with privilege separation and no ACL owns nothing, and is told all it needs', () =>
    withChecks(
      async (_rig, { check }) => {
        const target = await check();
        for (const part of [
          'VM.Clone on /vms/9001',
          'SDN.Use',
          "--tokens 'proxy-operator@pve!operator'",
        ]) {
          assert.ok(target.message.includes(part), part);
        }
        expectReason(target, 'Forbidden', /./);
      },
      {
        fixture: stepFixture({
          users: [
            {
              id: 'proxy-operator@pve',
              tokens: [{ id: 'operator', secret: tokenSecret, privsep: true }],
            },
          ],
        }),
      },
    ));

  it('what was granted shows at the next check', () =>
    withChecks(
      async (rig, { check }) => {
        expectReason(await check(), 'Forbidden', /VM\.GuestAgent\.Audit/);
        rig.simulator.core.access.grant('/', 'proxy-operator@pve', ['VM.GuestAgent.Audit']);
        assert.equal((await check()).reason, 'Reachable');
      },
      { fixture: rolesWithout('VM.GuestAgent.Audit') },
    ));
});
