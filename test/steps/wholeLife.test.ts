import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pollAgent } from '../../activities/pollAgent.ts';
import { ProviderError } from '../../activities/providerError.ts';
import { runLine, runRemoval } from '../support/lifeOfSteps.ts';
import { read } from '../support/pages.ts';
import { stepFixture } from '../support/stepFixture.ts';
import { withSteps, type StepRig } from '../support/stepHarness.ts';

/** A plan that needs every privilege: net0 is rewritten and the disk grown. */
function greedy(rig: StepRig): StepRig['plan'] {
  return { ...rig.plan, diskGiB: 1, vlanTag: 4 };
}

/** Everything a life may ask of Proxmox. */
const requests: readonly RegExp[] = [
  /^GET \/cluster\/resources$/,
  /^GET \/nodes$/,
  /^GET \/access\/permissions$/,
  /^GET \/nodes\/pve[12]\/tasks$/,
  /^GET \/nodes\/pve1\/tasks\/UPID:[^/]+\/(status|log)$/,
  /^GET \/nodes\/pve1\/qemu\/\d+\/(config|status\/current)$/,
  /^GET \/nodes\/pve1\/qemu\/\d+\/agent\/network-get-interfaces$/,
  /^GET \/nodes\/pve[12]\/storage\/(local|proxy-seeds)\/content(\/.+)?$/,
  /^POST \/nodes\/pve1\/qemu\/9001\/clone$/,
  /^POST \/nodes\/pve1\/storage\/proxy-seeds\/upload$/,
  /^PUT \/nodes\/pve1\/qemu\/\d+\/(config|resize)$/,
  /^POST \/nodes\/pve1\/qemu\/\d+\/status\/(start|stop)$/,
  /^DELETE \/nodes\/pve1\/qemu\/\d+$/,
  /^DELETE \/nodes\/pve1\/storage\/proxy-seeds\/content\/.+$/,
];

describe('a whole life of a VM', () => {
  it('needs the API alone, and of it these requests only: no firewall, no snippet, no cloud-init drive', () =>
    withSteps(async (rig) => {
      assert.ok(await runLine(rig, greedy(rig)));
      await runRemoval(rig, greedy(rig));
      const seen = rig.simulator.requests.map(({ method, path }) => `${method} ${path}`);
      assert.deepEqual(
        seen.filter((request) => !requests.some((known) => known.test(request))),
        [],
      );
      assert.deepEqual(
        requests.filter((known) => !seen.some((request) => known.test(request))),
        [],
        'each of them is made',
      );
      assert.deepEqual(
        [rig.simulator.isos(), rig.simulator.cluster.vms.has(rig.vmid)],
        [[], false],
      );
    }));

  it('takes a dozen requests or more to be made, and four for a look at it while it runs', () =>
    withSteps(async (rig) => {
      await runLine(rig);
      assert.ok(rig.simulator.requests.length >= 12, `${rig.simulator.requests.length} requests`);
      const before = rig.simulator.requests.length;
      await rig.run(pollAgent, { ref: rig.ref, plan: rig.plan, vm: rig.vmRef() });
      const look = rig.simulator.requests
        .slice(before)
        .map(({ method, path }) => `${method} ${path}`);
      const vm = `/nodes/pve1/qemu/${rig.vmid}`;
      assert.deepEqual(look.toSorted(), [
        'GET /cluster/resources',
        `GET ${vm}/agent/network-get-interfaces`,
        `GET ${vm}/config`,
        `GET ${vm}/status/current`,
      ]);
    }));

  it('writes the documented keys of the config, and the mark, and nothing else', () =>
    withSteps(async (rig) => {
      await runLine(rig, greedy(rig));
      const [write, ...others] = rig.sent('PUT', /\/config$/);
      assert.deepEqual(others, []);
      const keys = Object.keys(write?.params ?? {}).filter(
        (key) => !['node', 'vmid'].includes(key),
      );
      const written = ['agent', 'cores', 'digest', 'ide2', 'memory', 'net0', 'tags'];
      assert.deepEqual(keys.toSorted(), written);
    }));
});

/** Privileges of a role as docs/proxmox.md grants them. */
function rolesOfGuide(role: string): string {
  const { text } = read('docs/proxmox.md');
  const [, privileges = ''] =
    new RegExp(`pveum role add ${role} -privs "([^"]+)"`).exec(text) ?? [];
  assert.notEqual(privileges, '', role);
  return privileges;
}

const general = rolesOfGuide('ProxyOperator');
const seeds = rolesOfGuide('ProxyOperatorSeeds');

/** The cluster with one privilege taken out of a role; without the second role where `seeds` is null. */
function withoutPrivilege(
  missing: string | null,
  from: 'general' | 'seeds',
): ReturnType<typeof stepFixture> {
  const kept = (list: string, role: string): string[] =>
    list.split(' ').filter((name) => role !== from || name !== missing);
  return stepFixture({
    roles: [
      { id: 'ProxyOperator', privileges: kept(general, 'general') },
      { id: 'ProxyOperatorSeeds', privileges: kept(seeds, 'seeds') },
    ],
  });
}

/** What a life ends with. */
async function failureOf(rig: StepRig): Promise<ProviderError> {
  try {
    await runLine(rig, greedy(rig));
    await runRemoval(rig, greedy(rig));
  } catch (error) {
    if (error instanceof ProviderError) return error;
    throw error;
  }
  throw new Error('the life succeeded');
}

describe('the two roles of the guide', () => {
  it('are enough for a whole life', () =>
    withSteps(
      async (rig) => {
        assert.ok(await runLine(rig, greedy(rig)));
        await runRemoval(rig, greedy(rig));
      },
      { fixture: withoutPrivilege(null, 'general') },
    ));

  // Repeated on the seeds' storage (Datastore), or used to look at other people's tasks only.
  const spare = new Set(['Datastore.Audit', 'Datastore.AllocateTemplate', 'Sys.Audit']);
  const needed: ['general' | 'seeds', string][] = [
    ...general
      .split(' ')
      .filter((name) => !spare.has(name))
      .map((name): ['general', string] => ['general', name]),
    ['seeds', 'Datastore.Allocate'],
    // An ACL on the storage replaces what comes from /, so the second role repeats what the first one has.
    ['seeds', 'Datastore.AllocateTemplate'],
  ];
  for (const [role, missing] of needed) {
    it(`hold nothing in vain: ${missing} of the ${role} one is named when it is missing`, () =>
      withSteps(
        async (rig) => {
          const error = await failureOf(rig);
          assert.equal(error.facts.scope, 'provider');
          assert.ok(error.message.includes(missing), error.message);
          assert.match(error.message, /pveum /);
        },
        { fixture: withoutPrivilege(missing, role) },
      ));
  }
});
