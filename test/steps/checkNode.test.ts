/** One node checked on the simulated cluster: every reason of a target, and what the check knew by then. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { checkNode } from '../../activities/checkNode.ts';
import { ProviderError } from '../../activities/providerError.ts';
import type { FixtureInput } from '../simulator/fixture.ts';
import { eventually } from '../support/eventually.ts';
import { expectReason, withChecks } from '../support/healthRig.ts';
import { stepFixture, tokenSecret } from '../support/stepFixture.ts';
import type { StepRig } from '../support/stepHarness.ts';

/** What is known after each stage. */
const token = { isoStorage: 'proxy-seeds', tokenID: 'proxy-operator@pve!operator' };
const version = { ...token, pveVersion: '9.2.11' };
const detailsOf = { token, version, node: { ...version, kernel: '6.18.44-1-pve' } };

describe('checkNode', () => {
  it('finds a node where VMs can be made Reachable, and tells its facts', () =>
    withChecks(async (rig, { check }) => {
      const before = Date.now();
      const target = await check('pve2');
      const { latencyMs, checkedAt, details, ...rest } = target;
      assert.deepEqual(rest, {
        name: 'pve2',
        address: rig.simulator.url,
        ready: true,
        reason: 'Reachable',
        message: '',
      });
      const { isoStorageAvailGiB, ...facts } = details;
      assert.deepEqual(facts, { ...detailsOf.node, templates: '1/1' });
      assert.match(isoStorageAvailGiB ?? '', /^\d+\.\d$/);
      assert.ok(Date.parse(checkedAt ?? '') >= before - 1_000);
      assert.ok(latencyMs !== null && latencyMs <= Date.now() - before);
    }));

  it('sends the four requests of the specification in order, and one about privileges', () =>
    withChecks(async (rig, { check }) => {
      await check('pve1');
      assert.deepEqual(
        rig.simulator.requests.map(({ method, path }) => `${method} ${path}`),
        [
          'GET /version',
          'GET /access/permissions',
          'GET /nodes/pve1/status',
          'GET /nodes/pve1/storage/proxy-seeds/status',
          'GET /cluster/resources',
        ],
      );
    }));

  it('says that a node has left the config, and what is configured', () =>
    withChecks(async (rig, { deps }) => {
      const step: Parameters<StepRig['run']>[0] = (_deps, context) =>
        checkNode(deps, context, { provider: 'pve', node: 'pve9' });
      assert.deepEqual(await rig.run(step, {}), {
        target: null,
        settings: {
          address: rig.simulator.url,
          nodes: ['pve1', 'pve2'],
          intervalMs: 60_000,
          timeoutMs: 10_000,
        },
      });
      assert.deepEqual(rig.simulator.requests, []);
    }));

  it('fails when nobody knows the provider any more', () =>
    withChecks(async (rig, { deps }) => {
      const step: Parameters<StepRig['run']>[0] = (_deps, context) =>
        checkNode(deps, context, { provider: 'gone', node: 'pve1' });
      const error = await rig.refusal(step, {});
      assert.equal(error.facts.reason, 'ProviderUnknown');
      assert.match(error.message, /"gone".*configured are: pve$/);
    }));
});

describe('a target is not ready', () => {
  it('CredentialsUnavailable: the token file is missing or holds no token; nothing is sent', () =>
    withChecks(async (rig, { check }) => {
      writeFileSync(rig.tokenFile, 'not a token\n');
      const malformed = await check();
      expectReason(malformed, 'CredentialsUnavailable', /does not hold an API token/);
      assert.deepEqual(malformed.details, { isoStorage: 'proxy-seeds' });
      rmSync(rig.tokenFile);
      expectReason(await check(), 'CredentialsUnavailable', /token file .*ENOENT/);
      assert.deepEqual(rig.simulator.requests, []);
    }));

  it('CertificateInvalid: the CA file is missing, holds no certificate, or is not the one that signed', () =>
    withChecks(async (rig, { check }) => {
      rig.configure({ caFile: '/nowhere/ca.pem' });
      const missing = await check();
      expectReason(missing, 'CertificateInvalid', /CA file \/nowhere\/ca\.pem/);
      assert.deepEqual(missing.details, detailsOf.token);
      rig.configure({ caFile: rig.tokenFile });
      expectReason(await check(), 'CertificateInvalid', /holds no PEM certificate/);
      rig.configure({ caFile: undefined });
      expectReason(await check(), 'CertificateInvalid', /was not accepted/);
      assert.deepEqual(rig.simulator.requests, []);
    }));

  it("CertificateInvalid: the URL's host is not in the certificate", () =>
    withChecks(async (rig, { check }) => {
      rig.configure({ url: rig.simulator.url.replace('127.0.0.1', 'localhost') });
      expectReason(await check(), 'CertificateInvalid', /use a host of that list in url/);
    }));

  it('Unreachable: nobody listens, or the connection is cut in the middle of an answer', () =>
    withChecks(async (rig, { check }) => {
      rig.simulator.faults.push({ path: /^\/version$/, action: { kind: 'reset', when: 'after' } });
      expectReason(await check(), 'Unreachable', /broke/);
      rig.configure({ url: 'https://127.0.0.1:1' });
      const target = await check();
      expectReason(target, 'Unreachable', /ECONNREFUSED/);
      assert.equal(target.address, 'https://127.0.0.1:1');
    }));

  for (const [status, reason] of [
    [595, 'No route to host'],
    [596, 'Connection timed out'],
  ] as const) {
    it(`Unreachable: ${status}, the node behind the API does not answer`, () =>
      withChecks(async (rig, { check }) => {
        const action = { kind: 'status', status, reason, when: 'before' } as const;
        rig.simulator.faults.push({ path: /^\/nodes\/pve2\/status$/, action });
        const target = await check('pve2');
        expectReason(target, 'Unreachable', new RegExp(`${status} ${reason}.*node pve2 up`));
        assert.deepEqual(target.details, detailsOf.version);
      }));
  }

  it('Unreachable: a node that is down, and it alone', () =>
    withChecks(async (rig, { check }) => {
      rig.simulator.setNode('pve2', { state: 'dead' });
      const [up, down] = await Promise.all([check('pve1'), check('pve2')]);
      assert.equal(up.reason, 'Reachable');
      expectReason(down, 'Unreachable', /595/);
    }));

  it('Unauthorized: the secret is wrong, and it shows nowhere', () =>
    withChecks(async (rig, { check }) => {
      const wrong = tokenSecret.replace('cafe', 'dead');
      writeFileSync(rig.tokenFile, `proxy-operator@pve!operator=${wrong}\n`);
      const target = await check();
      expectReason(target, 'Unauthorized', /401.*pveum user token list proxy-operator@pve/);
      assert.deepEqual(target.details, detailsOf.token);
      assert.ok(!JSON.stringify([target, rig.lines]).includes(wrong));
      writeFileSync(rig.tokenFile, `proxy-operator@pve!operator=${tokenSecret}\n`);
      assert.equal((await check()).reason, 'Reachable');
    }));

  it('Timeout: the check ran out of its time, and nobody else did', () =>
    withChecks(
      async (rig, { check }) => {
        rig.simulator.faults.push({
          path: /^\/nodes\/pve1\/storage\//,
          action: { kind: 'hang', when: 'before' },
        });
        const [slow, other] = await Promise.all([check('pve1'), check('pve2')]);
        expectReason(
          slow,
          'Timeout',
          /ran out of its 0\.6 s while reading the status of the storage/,
        );
        assert.deepEqual(slow.details, detailsOf.node);
        const { latencyMs } = slow;
        assert.ok(latencyMs !== null && latencyMs >= 590 && latencyMs < 10_000, `${latencyMs} ms`);
        assert.equal(other.reason, 'Reachable');
        const step = rig.deps.providers.api('pve', {
          signal: new AbortController().signal,
          writesUntilMs: 0,
        });
        assert.equal((await step.getVersion()).version, '9.2.11');
      },
      {},
      600,
    ));

  it('Timeout: one request ran out of requestTimeoutSeconds while the check had time', () =>
    withChecks(async (rig, { check }) => {
      rig.configure({ requestTimeoutSeconds: 1 });
      rig.simulator.faults.push({
        path: /^\/cluster\/resources$/,
        action: { kind: 'hang', when: 'before' },
      });
      expectReason(await check(), 'Timeout', /list VMs .*no complete answer within 1 s/);
    }));

  const storages: [string, Record<string, unknown>, RegExp][] = [
    ['nobody defined it (400)', { isoStorage: 'nosuch' }, /400 .*No such storage\./],
    [
      'it is disabled',
      { isoStorage: 'off' },
      /storage off is disabled, or not meant for node pve1/,
    ],
    [
      'it is for other nodes only',
      { isoStorage: 'elsewhere' },
      /not meant for node pve1 \(enabled 0\)/,
    ],
    [
      'it is not mounted',
      { isoStorage: 'unmounted' },
      /storage unmounted is not active on node pve1/,
    ],
    [
      'it holds no iso',
      { isoStorage: 'local' },
      /holds .*not iso.*pvesm set local --content .*,iso$/,
    ],
  ];
  for (const [title, change, message] of storages) {
    it(`StorageNotFound: ${title}`, () =>
      withChecks(
        async (rig, { check }) => {
          rig.configure(change);
          const target = await check();
          expectReason(target, 'StorageNotFound', message);
          assert.equal(target.details['isoStorageAvailGiB'], undefined);
          assert.equal(target.details['kernel'], '6.18.44-1-pve');
        },
        { fixture: manyStorages() },
      ));
  }

  it('StorageNotFound: Proxmox answers with a 500', () =>
    withChecks(async (rig, { check }) => {
      const reason = 'mount error: permission denied';
      const action = { kind: 'status', status: 500, reason, when: 'before' } as const;
      rig.simulator.faults.push({ path: /\/storage\/proxy-seeds\/status$/, action });
      expectReason(await check(), 'StorageNotFound', /500 mount error: permission denied/);
    }));

  it('TemplateNotFound: a VMID that nobody has, or that is no template, and how many are there', () =>
    withChecks(async (rig, { check }) => {
      rig.place({ vmid: 101 });
      rig.configure({
        templates: { 'debian-13': { vmid: 9001 }, gone: { vmid: 9099 }, plain: { vmid: 101 } },
      });
      const target = await check();
      const both =
        /templates\.gone: VM 9099 does not exist; templates\.plain: VM 101 is not a template/;
      expectReason(target, 'TemplateNotFound', both);
      assert.equal(target.details['templates'], '1/3');
    }));

  it("a node's own copy of a template is looked for there only", () =>
    withChecks(async (rig, { check }) => {
      const vmids = { pve1: 9001, pve2: 9099 };
      rig.configure({ templates: { 'debian-13': { vmids } } });
      assert.equal((await check('pve1')).reason, 'Reachable');
      expectReason(await check('pve2'), 'TemplateNotFound', /VM 9099/);
    }));

  it('APIError: an answer that is no JSON, and any other failure, with the text of Proxmox', () =>
    withChecks(async (rig, { check }) => {
      rig.simulator.faults.push({ path: /^\/version$/, action: { kind: 'malformed' } });
      expectReason(await check(), 'APIError', /is not the API's JSON/);
      const action = { kind: 'status', status: 500, reason: 'sorry', when: 'before' } as const;
      rig.simulator.faults.push({ path: /^\/cluster\/resources$/, action });
      expectReason(await check(), 'APIError', /500 sorry/);
    }));
});

describe('a check that is to end', () => {
  it('ends with its attempt, and is no finding about the node', () =>
    withChecks(async (rig, { check }) => {
      rig.simulator.faults.push({ path: /^\/version$/, action: { kind: 'hang', when: 'before' } });
      const ended = new AbortController();
      const call = { signal: ended.signal, writesUntilMs: 0 };
      const checking = check('pve1', { call }).then(
        () => 'a target',
        (error: unknown) => error,
      );
      await eventually(() => rig.simulator.faults.rules[0]?.hits === 1);
      ended.abort(new Error('shutdown'));
      const error = await checking;
      assert.ok(error instanceof Error && !(error instanceof ProviderError));
      assert.equal(error.message, 'shutdown');
    }));
});

function manyStorages(): FixtureInput {
  const { storages } = stepFixture();
  return stepFixture({
    storages: [
      ...storages,
      { id: 'off', type: 'dir', content: ['iso'], disabled: true },
      { id: 'elsewhere', type: 'dir', content: ['iso'], nodes: ['pve2'] },
      { id: 'unmounted', type: 'dir', content: ['iso'], mounted: false },
    ],
  });
}
