/** A token that lacks one privilege of the guide's roles: where that shows, and that the line in the message mends it (cases.md 23). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ProviderError } from '../../activities/providerError.ts';
import { operatorPrivileges, seedPrivileges } from '../../activities/proxmox/privileges.ts';
import { runLine, runRemoval } from '../support/lifeOfSteps.ts';
import { stepFixture } from '../support/stepFixture.ts';
import { hashOf, withSteps, type StepRig } from '../support/stepHarness.ts';

type Role = 'ProxyOperator' | 'ProxyOperatorSeeds';

/** The cluster with one privilege less in one role. */
function without(role: Role, privilege: string): ReturnType<typeof stepFixture> {
  const fixture = stepFixture();
  const roles = (fixture.roles ?? []).map((one) => ({
    ...one,
    privileges: one.privileges.filter((held) => one.id !== role || held !== privilege),
  }));
  return { ...fixture, roles };
}

const command =
  /pveum role modify (?<role>\S+) --append 1 --privs "(?<privileges>[^"]+)"(?: && pveum acl modify (?<path>\S+) --users (?<user>\S+))?/;

/** Does on the simulated cluster what the command of a message says, and tells which privileges it granted. */
function obey(rig: StepRig, remedy: string): string[] {
  const { role, privileges = '', path } = command.exec(remedy)?.groups ?? {};
  assert.ok(role === 'ProxyOperator' || role === 'ProxyOperatorSeeds', `no command in: ${remedy}`);
  const granted = privileges.split(' ');
  // Without the second half the role is where the guide puts it.
  const where = path ?? (role === 'ProxyOperator' ? '/' : '/storage/proxy-seeds');
  rig.simulator.core.access.grant(where, 'proxy-operator@pve', granted);
  return granted;
}

/** Runs a part of the VM's life as often as a command of a message mends it. */
async function mended(rig: StepRig, part: () => Promise<unknown>): Promise<string[]> {
  const granted: string[] = [];
  for (let round = 0; round < 4; round += 1) {
    try {
      await part();
      return granted;
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      const { reason, scope, remedy = '' } = error.facts;
      assert.ok(reason === 'Forbidden' || reason === 'ListingIncomplete', error.message);
      assert.equal(scope, 'provider');
      assert.ok(error.message.includes(remedy), error.message);
      granted.push(...obey(rig, remedy));
    }
  }
  throw new Error(`granting ${granted.join(', ')} does not help`);
}

/** What is refused when it is missing; the others are read rights that another privilege stands in for. */
const standIns: Record<Role, string[]> = {
  ProxyOperator: ['Datastore.Audit', 'Datastore.AllocateTemplate', 'Sys.Audit'],
  ProxyOperatorSeeds: ['Datastore.Audit', 'Datastore.AllocateSpace'],
};

describe('a token without', () => {
  const all: [Role, string][] = [
    ...operatorPrivileges.map((one): [Role, string] => ['ProxyOperator', one]),
    ...seedPrivileges.map((one): [Role, string] => ['ProxyOperatorSeeds', one]),
  ];
  for (const [role, privilege] of all) {
    const missed = !standIns[role].includes(privilege);
    const what = missed ? 'is told so, and what the message says mends it' : 'can do all the same';
    it(`${privilege} in ${role} ${what}: a VM is made and removed, nothing is left`, () =>
      withSteps(
        async (rig) => {
          rig.configure({ bridge: 'vmbr0', vlanTag: 4, machineTypes: { small: { cores: 1, memoryMiB: 512, diskGiB: 1 } } }); // prettier-ignore
          const plan = { ...rig.plan, bridge: 'vmbr0', vlanTag: 4, diskGiB: 1, specHash: hashOf('#cloud-config\n') }; // prettier-ignore
          const made = await mended(rig, () => runLine(rig, plan));
          const removed = await mended(rig, () => runRemoval(rig, plan));
          const granted = new Set([...made, ...removed]);
          assert.equal(granted.has(privilege), missed, `granted: ${[...granted].join(', ')}`);
          assert.equal(rig.simulator.cluster.vms.has(rig.vmid), false);
          assert.deepEqual(rig.simulator.isos(), []);
        },
        { fixture: without(role, privilege) },
      ));
  }
});
