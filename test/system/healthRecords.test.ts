/** ProviderHealth objects at a real API server, written with the rights of the worker. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { KubeConfig } from '@kubernetes/client-node';
import {
  createKubernetesClient,
  type KubernetesClient,
} from '../../activities/kubernetes/client.ts';
import { KubernetesHealthRecords } from '../../activities/kubernetes/healthRecords.ts';
import { withCondition, withTargets } from '../../activities/kubernetes/healthStatus.ts';
import { ProviderError } from '../../activities/providerError.ts';
import type { ProviderHealthStatus } from '../../api/providerHealth.ts';
import type { TargetHealth } from '../../workflows/contract/providerSteps.ts';
import { eventually } from '../support/eventually.ts';
import { startApiServer, type ApiServer } from './support/apiserver.ts';

const manifests = [
  '../../deploy/crds',
  '../../deploy/base/namespace.yaml',
  '../../deploy/base/rbac',
];
const now = new Date('2026-11-29T12:00:00Z');

const target: TargetHealth = {
  name: 'pv1-1',
  address: 'https://192.0.2.1:8006',
  ready: true,
  reason: 'Reachable',
  message: '',
  latencyMs: 12,
  checkedAt: '2026-11-29T12:00:00Z',
  details: { pveVersion: '9.2.11', isoStorage: 'proxy-seeds' },
};

describe('ProviderHealth at a real API server', { timeout: 180_000 }, () => {
  let server: ApiServer;
  let client: KubernetesClient | undefined;
  let records: KubernetesHealthRecords;

  before(async () => {
    server = await startApiServer();
    for (const path of manifests) {
      const file = fileURLToPath(new URL(path, import.meta.url));
      const { code, stderr } = await server.kubectl.run(['apply', '-f', file]);
      assert.equal(code, 0, stderr);
    }
    await server.kubectl.run(['wait', '--for=condition=Established', '--timeout=30s', 'crd', '--all']); // prettier-ignore
    const config = new KubeConfig();
    config.loadFromFile(server.files.kubeconfigs.worker);
    client = createKubernetesClient(config);
    records = new KubernetesHealthRecords(client);
  });
  after(async () => {
    await client?.close();
    await server.stop();
  });

  const columns = async (name: string): Promise<string> => {
    const { stdout } = await server.kubectl.run(['get', 'ph', name, '--no-headers']);
    return stdout.trim().split(/\s+/).slice(0, 4).join(' ');
  };
  const versionOf = async (name: string): Promise<string> => {
    const path = '-o=jsonpath={.metadata.resourceVersion}';
    return (await server.kubectl.run(['get', 'ph', name, path])).stdout;
  };
  const configValid = (status: ProviderHealthStatus): ProviderHealthStatus =>
    withCondition(
      status,
      { type: 'ConfigValid', status: 'True', reason: 'Accepted', message: '' },
      now,
    );

  test('is made, changed and read back as written', async () => {
    const down: TargetHealth = {
      ...target,
      name: 'pv1-2',
      ready: false,
      reason: 'ProviderNotServed',
      message: 'nobody',
      latencyMs: null,
      checkedAt: null,
      details: {},
    };
    await records.update('made', (status) => withTargets(status, [target, down], now));
    assert.equal(await columns('made'), 'made proxmox 1/2 ProviderNotServed');
    const found = await records.get('made');
    assert.deepEqual(found, withTargets(found, [target, down], now));
    assert.deepEqual(found.targets[1]?.details, {});
    await records.update('made', (status) => withTargets(status, [target], now));
    assert.equal(await columns('made'), 'made proxmox 1/1 Reachable');
    assert.equal((await records.get('made')).targets.length, 1);
  });

  test('keeps what several write at the same time', async () => {
    await Promise.all([
      records.update('shared', (status) => withTargets(status, [target], now)),
      records.update('shared', configValid),
      records.update('shared', (status) => withCondition(status, { type: 'Other', status: 'True', reason: 'R', message: '' }, now)), // prettier-ignore
    ]);
    const { targets, conditions } = await records.get('shared');
    assert.equal(targets.length, 1);
    assert.deepEqual(conditions.map(({ type }) => type).sort(), ['ConfigValid', 'Other']);
  });

  test('is not written when nothing differs', async () => {
    await records.update('quiet', configValid);
    const version = await versionOf('quiet');
    await records.update('quiet', configValid);
    assert.equal(await versionOf('quiet'), version);
  });

  test('is listed by name, and goes once and for all', async () => {
    await records.update('leaving', (status) => withTargets(status, [target], now));
    assert.equal((await records.list()).get('leaving')?.targets[0]?.name, 'pv1-1');
    await records.remove('leaving');
    await records.remove('leaving');
    assert.equal((await records.list()).has('leaving'), false);
    assert.deepEqual((await records.get('leaving')).targets, []);
  });

  test('has Events that kubectl describe shows', async () => {
    await records.update('told', configValid);
    const event = { type: 'Warning', reason: 'Timeout', action: 'checkNode', message: 'node pv1-1: slow' } as const; // prettier-ignore
    await records.recordEvent('told', event);
    await records.recordEvent('never', event);
    const { stdout } = await server.kubectl.run(['describe', 'ph', 'told']);
    assert.match(stdout, /Warning +Timeout .*node pv1-1: slow/);
  });

  test('names object and rule when it cannot be written', async () => {
    await server.kubectl.run(['delete', 'crd', 'providerhealths.egress-proxies.io']);
    const told: string[] = [];
    const write = (): Promise<unknown> =>
      records.update('made', (status) => withTargets(status, [target], now));
    // Deleted, it is refused as «terminating» for a while yet.
    await eventually(async () => {
      const error = await write().catch((thrown: unknown) => thrown);
      assert.ok(error instanceof ProviderError);
      assert.equal(error.facts.reason, 'KubernetesUnavailable');
      told.push(error.message);
      assert.match(error.message, /ProviderHealth made: HTTP 404.*custom resource definitions/);
    });
    assert.doesNotMatch(told.join('\n'), /RBAC/);
  });
});
