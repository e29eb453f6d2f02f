import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import {
  createKubernetesClient,
  type KubernetesClient,
} from '../../activities/kubernetes/client.ts';
import { surveyOf } from '../../activities/kubernetes/survey.ts';
import { ProviderError } from '../../activities/providerError.ts';
import type { ShownOrphans } from '../../activities/kubernetes/orphanBoard.ts';
import { publishOrphans, type OrphanBoard } from '../../activities/publishOrphans.ts';
import { signalOrphan } from '../../activities/signalOrphan.ts';
import { createWorkerMetrics } from '../../worker/metrics.ts';
import type { PublishOrphansInput } from '../../workflows/contract/collection.ts';
import type { ProxyEvent } from '../../workflows/contract/proxy.ts';
import { aRef } from '../support/aPlan.ts';
import { FakeKubernetes } from '../support/fakeKubernetes.ts';
import { withSteps } from '../support/stepHarness.ts';

const path = '/apis/egress-proxies.io/v1alpha1/proxies';

describe('the survey of all Proxies', () => {
  let server: FakeKubernetes;
  let client: KubernetesClient;
  before(async () => {
    server = await new FakeKubernetes().start();
    client = createKubernetesClient(server.kubeConfig(), 2_000);
  });
  after(async () => {
    await client.close();
    await server.stop();
  });
  beforeEach(() => {
    server.refusals.clear();
  });

  it('has every Proxy of every page, with its leftovers, and the version of the list', async () => {
    const leftover = { provider: 'pve', vmid: 310, node: 'pve1', upid: '', reason: 'locked' };
    for (let index = 0; index < 501; index += 1) server.put(`p${index}`);
    server.setStatus('p500', { leftovers: [leftover] });
    server.setStatus('p499', { leftovers: 'edited by hand' });
    const { version, proxies } = await surveyOf(client)();
    assert.equal(proxies.length, 501);
    const uid = server.object('p500')?.metadata.uid ?? '';
    const last = proxies.find(({ ref }) => ref.uid === uid);
    assert.deepEqual(last, { ref: aRef({ name: 'p500', uid }), leftovers: [leftover] });
    assert.ok(
      proxies.some(({ ref }) => ref.name === 'p499'),
      'a faulty status hides no object',
    );
    assert.equal(version, server.object('p499')?.metadata.resourceVersion);
  });

  it('is an error, not an empty list, when the kind is missing or the answer is refused', async () => {
    for (const status of [404, 403, 500]) {
      server.refusals.set(path, status);
      await assert.rejects(
        surveyOf(client)(),
        (error) => error instanceof ProviderError && error.facts.reason === 'KubernetesUnavailable',
      );
    }
  });

  it('is an error, not an empty list, when the API server does not answer', async () => {
    const gone = await new FakeKubernetes().start();
    const late = createKubernetesClient(gone.kubeConfig(), 2_000);
    await gone.stop();
    await assert.rejects(surveyOf(late)(), /Check that the Kubernetes API server is up/);
    await late.close();
  });
});

describe('publishOrphans', () => {
  const event: ProxyEvent = {
    type: 'Warning',
    reason: 'OrphanFound',
    action: 'Collect',
    message: 'VM 300 on pve1 has no Proxy',
  };
  const input: PublishOrphansInput = {
    provider: 'pve',
    vms: 2,
    seeds: 1,
    leftovers: 0,
    alarm: null,
    blind: false,
    problem: null,
    events: [],
    ended: false,
  };

  interface Board extends OrphanBoard {
    shown: ShownOrphans | null;
    events: readonly ProxyEvent[];
    counts: Record<string, number> | null | undefined;
    rested: string[];
  }
  function board(): Board {
    const made: Board = {
      shown: null,
      events: [],
      counts: undefined,
      rested: [],
      show: async (_provider, shown, events) => {
        made.shown = shown;
        made.events = events;
      },
      count: (_provider, counts) => {
        made.counts = counts;
      },
      restSchedule: async (provider) => {
        made.rested.push(provider);
      },
    };
    return made;
  }

  it('shows counts, alarm and Events, and logs what is new', () =>
    withSteps(async (rig) => {
      const seen = board();
      const alarm = {
        id: 'orphans-1',
        kind: 'MassAbsence',
        message: '2 of 2',
        vmids: [1, 2],
      } as const;
      const told = { ...input, alarm: { ...alarm, vmids: [...alarm.vmids] }, events: [event] };
      await rig.run(publishOrphans(seen), told);
      const { vms, seeds, leftovers, alarm: id, message, lastRound } = seen.shown ?? {};
      assert.deepEqual([vms, seeds, leftovers, id, message], [2, 1, 0, 'orphans-1', '2 of 2']);
      assert.ok(Math.abs(Date.parse(lastRound ?? '') - Date.now()) < 60_000);
      assert.deepEqual(seen.events, [event]);
      assert.deepEqual(seen.counts, { vm: 2, seed: 1, leftover: 0 });
      assert.ok(rig.lines.some(({ msg }) => msg === `collection: ${event.message}`));
    }));

  it('counts nothing in a round that could not look, and shows why', () =>
    withSteps(async (rig) => {
      const seen = board();
      await rig.run(publishOrphans(seen), { ...input, problem: 'Unreachable: no connection' });
      assert.equal(seen.counts, undefined);
      assert.equal(seen.shown?.message, 'Unreachable: no connection');
    }));

  it('leaves the alarm that is shown while no round has looked', () =>
    withSteps(async (rig) => {
      const seen = board();
      await rig.run(publishOrphans(seen), { ...input, blind: true, problem: 'Unreachable: no' });
      assert.ok(seen.shown && !('alarm' in seen.shown));
      await rig.run(publishOrphans(seen), input);
      assert.equal(seen.shown.alarm, null);
    }));

  it('takes everything away with a provider that nobody serves', () =>
    withSteps(async (rig) => {
      const seen = board();
      await rig.run(publishOrphans(seen), { ...input, ended: true });
      assert.deepEqual([seen.rested, seen.counts, seen.shown], [['pve'], null, null]);
    }));
});

it('signalOrphan tells the run of the owner, and says so', () =>
  withSteps(async (rig) => {
    const told: unknown[] = [];
    const step = signalOrphan(async (owner, orphan) => {
      told.push([owner, orphan]);
    });
    await rig.run(step, { provider: 'pve', vmid: 300, owner: aRef() });
    assert.deepEqual(told, [[aRef(), { provider: 'pve', vmid: 300 }]]);
    assert.ok(rig.lines.some(({ msg, vmid }) => msg === 'orphan signalled' && vmid === 300));
  }));

it('the gauge of orphans has a value per provider and kind, and none of a provider that left', async () => {
  const metrics = createWorkerMetrics({
    configValid: () => true,
    providerHealth: async () => new Map(),
  });
  const lines = async (): Promise<string[]> =>
    (await metrics.registry.metrics())
      .split('\n')
      .filter((line) => line.startsWith('proxy_operator_gc'));
  metrics.onOrphans('a', { vm: 2, seed: 1 });
  metrics.onOrphans('b', { vm: 0, seed: 0 });
  assert.deepEqual(await lines(), [
    'proxy_operator_gc_orphans{provider="a",kind="vm"} 2',
    'proxy_operator_gc_orphans{provider="a",kind="seed"} 1',
    'proxy_operator_gc_orphans{provider="b",kind="vm"} 0',
    'proxy_operator_gc_orphans{provider="b",kind="seed"} 0',
  ]);
  metrics.onOrphans('a', null);
  assert.equal((await lines()).length, 2);
});
