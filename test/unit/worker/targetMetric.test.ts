/** The gauge of targets: what the ProviderHealth objects say, whichever worker is asked. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  providerHealthStatusSchema,
  type ProviderHealthStatus,
} from '../../../api/providerHealth.ts';
import { createWorkerMetrics, readForMetrics } from '../../../worker/metrics.ts';

function statusOf(targets: Record<string, boolean>): ProviderHealthStatus {
  const time = '2026-11-29T12:00:00Z';
  return providerHealthStatusSchema.parse({
    targets: Object.entries(targets).map(([name, ready]) => ({
      name,
      ready,
      address: 'https://192.0.2.1:8006',
      reason: ready ? 'Reachable' : 'Timeout',
      lastTransition: time,
    })),
  });
}

describe('proxy_operator_provider_target_up', () => {
  let seen: Map<string, ProviderHealthStatus> | null = null;
  const { registry } = createWorkerMetrics({
    configValid: () => true,
    providerHealth: () => Promise.resolve(seen),
  });
  const series = async (): Promise<string[]> =>
    (await registry.metrics())
      .split('\n')
      .filter((line) => line.startsWith('proxy_operator_provider_target_up{'))
      .map((line) => line.replace('proxy_operator_provider_target_up', ''));

  it('has a series for every target, which goes with its target or provider', async () => {
    seen = new Map([
      ['lab', statusOf({ pve1: true, pve2: false })],
      ['other', statusOf({ node: true })],
    ]);
    assert.deepEqual(await series(), [
      '{provider="lab",target="pve1"} 1',
      '{provider="lab",target="pve2"} 0',
      '{provider="other",target="node"} 1',
    ]);
    seen = new Map([['lab', statusOf({ pve2: true })]]);
    assert.deepEqual(await series(), ['{provider="lab",target="pve2"} 1']);
  });

  it('says nothing while Kubernetes cannot be read', async () => {
    seen = null;
    assert.deepEqual(await series(), []);
  });

  it('does not wait for a Kubernetes that does not answer, and survives one that refuses', async () => {
    const never = Promise.withResolvers<never>().promise;
    assert.equal(await readForMetrics({ list: () => never }, 10), null);
    assert.equal(await readForMetrics({ list: () => Promise.reject(new Error('no')) }), null);
    const found = new Map([['lab', statusOf({})]]);
    assert.equal(await readForMetrics({ list: () => Promise.resolve(found) }), found);
  });
});
