import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Proxy } from '../../../api/proxy.ts';
import { createKubernetesClient } from '../../../activities/kubernetes/client.ts';
import type { KubernetesClient } from '../../../activities/kubernetes/client.ts';
import { ProxyCache } from '../../../activities/kubernetes/proxyCache.ts';
import type { CachePace } from '../../../activities/kubernetes/proxyCache.ts';
import type { ProxyHandlers } from '../../../activities/kubernetes/proxyStore.ts';
import { eventually } from '../../support/eventually.ts';
import { FakeKubernetes } from '../../support/fakeKubernetes.ts';
import { recordingLog } from '../../support/recordingLog.ts';

const quick: CachePace = {
  pageSize: 500,
  idleMs: 5_000,
  fullListMs: 60_000,
  overdueMs: 0,
  steadyMs: 0,
  retryFirstMs: 20,
  retryMaxMs: 160,
};

describe('the Proxy cache', () => {
  let server: FakeKubernetes;
  let client: KubernetesClient;
  let cache: ProxyCache | undefined;
  const { log, lines } = recordingLog();

  function start(pace: Partial<CachePace> = {}, handlers: ProxyHandlers = {}): ProxyCache {
    cache = new ProxyCache({ client, log, handlers, pace: { ...quick, ...pace } });
    return cache;
  }
  const names = (): string[] => (cache?.list() ?? []).map(({ metadata }) => metadata.name).sort();
  const watches = () => server.requests.filter(({ watch }) => watch);
  const lists = () => server.requests.filter(({ watch }) => !watch);

  beforeEach(async () => {
    server = await new FakeKubernetes().start();
    client = createKubernetesClient(server.kubeConfig());
    lines.length = 0;
  });
  afterEach(async () => {
    await cache?.stop();
    await client.close();
    await server.stop();
  });

  it('holds what existed before and what comes afterwards', async () => {
    server.put('p1');
    start();
    await eventually(() => assert.deepEqual(names(), ['p1']));
    await eventually(() => server.openWatches() === 1);
    server.put('p2');
    await eventually(() => assert.deepEqual(names(), ['p1', 'p2']));
    server.remove('p1');
    await eventually(() => assert.deepEqual(names(), ['p2']));
  });

  it('is not synced before the first full list', async () => {
    server.refusals.set('/proxies', 500);
    start();
    await eventually(() => server.requests.length > 1);
    assert.equal(cache?.synced(), false);
    assert.equal(cache?.lastSyncMs(), null);
    server.refusals.clear();
    await eventually(() => cache?.synced() === true);
  });

  it('takes a long list page by page', async () => {
    for (const name of ['p1', 'p2', 'p3', 'p4', 'p5']) server.put(name);
    start({ pageSize: 2 });
    await eventually(() => assert.deepEqual(names(), ['p1', 'p2', 'p3', 'p4', 'p5']));
    assert.equal(lists().length, 3);
  });

  it('sees what happened while its connection was silent (21 a)', async () => {
    server.put('p1');
    server.put('p2');
    start({ idleMs: 150 });
    await eventually(() => server.openWatches() === 1);
    server.silenceWatches();
    server.put('p5');
    server.put('p1', { port: 3129 });
    server.remove('p2');
    await eventually(() => {
      assert.deepEqual(names(), ['p1', 'p5']);
      assert.equal(cache?.list().find((p) => p.metadata.name === 'p1')?.spec.port, 3129);
    });
  });

  it('lists again by itself, so that even a watch that lies is corrected (21 a)', async () => {
    start({ fullListMs: 200 });
    await eventually(() => cache?.synced() === true);
    // A watch that answers, stays open and tells nothing.
    server.silenceWatches();
    await eventually(() => lists().length >= 3);
  });

  it('lists again when its version has expired, and misses nothing (21 b)', async () => {
    server.put('p1');
    start();
    await eventually(() => server.openWatches() === 1);
    server.silenceWatches();
    server.put('p2');
    server.remove('p1');
    server.oldestVersion = Number(server.object('p2')?.metadata.resourceVersion);
    server.sendLine({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } });
    server.breakWatches();
    await cache?.stop();
    start();
    await eventually(() => assert.deepEqual(names(), ['p2']));
  });

  it('takes an ERROR of code 410 in mid-watch as the order to list again (21 b)', async () => {
    const deleted: string[] = [];
    server.put('p1');
    start({}, { deleted: (proxy) => deleted.push(proxy.metadata.name) });
    await eventually(() => server.openWatches() === 1);
    const before = lists().length;
    server.sendLine({ type: 'ERROR', object: { kind: 'Status', code: 410, message: 'expired' } });
    await eventually(() => lists().length > before);
    server.remove('p1');
    await eventually(() => assert.deepEqual(deleted, ['p1']));
  });

  it('opens watches ever more slowly when each is closed at once (21 c)', async () => {
    server.closeWatchesAtOnce = true;
    start({ steadyMs: 5_000 });
    await eventually(() => watches().length >= 6, 10_000);
    const times = watches().map(({ atMs }) => atMs);
    const pauses = times.slice(1).map((atMs, index) => atMs - (times[index] ?? 0));
    for (const [index, pause] of pauses.slice(0, 5).entries()) {
      const least = Math.min(160, 20 * 2 ** index);
      // Timers of Node may fire a millisecond early.
      assert.ok(pause >= least - 2, `pause ${index + 1} was ${pause} ms, not ${least} ms`);
    }
  });

  it('ignores a duplicate and a late older version (21 e)', async () => {
    const ports: number[] = [];
    start({}, { changed: (proxy) => ports.push(proxy.spec.port) });
    await eventually(() => server.openWatches() === 1);
    const first = server.put('p1', { port: 1 });
    const second = server.put('p1', { port: 2 });
    server.sendLine({ type: 'MODIFIED', object: second });
    server.sendLine({ type: 'MODIFIED', object: first });
    server.put('p1', { port: 3 });
    await eventually(() => assert.deepEqual(ports, [1, 2, 3]));
  });

  it('is not brought to revive a deleted object by a late event (21 e)', async () => {
    start();
    await eventually(() => server.openWatches() === 1);
    const object = server.put('p1');
    await eventually(() => assert.deepEqual(names(), ['p1']));
    server.remove('p1');
    server.sendLine({ type: 'MODIFIED', object });
    server.put('p2');
    await eventually(() => assert.deepEqual(names(), ['p2']));
  });

  it('lives on bookmarks alone and continues from the last one (21 f)', async () => {
    start({ idleMs: 300 });
    await eventually(() => server.openWatches() === 1);
    const atMs = cache?.lastSyncMs() ?? 0;
    server.sendLine({
      type: 'BOOKMARK',
      object: { kind: 'Proxy', metadata: { resourceVersion: '5000' } },
    });
    await eventually(() => (cache?.lastSyncMs() ?? 0) > atMs);
    // Versions before the bookmark have been compacted away; only one who read it can go on without a list.
    server.oldestVersion = 5_000;
    const before = { lists: lists().length, watches: watches().length };
    await eventually(() => watches().length > before.watches && server.openWatches() === 1);
    assert.equal(lists().length, before.lists);
  });

  it('reports an object that was deleted and made again under its name as two (21 d)', async () => {
    const seen: string[] = [];
    const uid = (proxy: Proxy) => proxy.metadata.uid;
    const first = server.put('p1').metadata.uid;
    start({}, { changed: (p) => seen.push(`+${uid(p)}`), deleted: (p) => seen.push(`-${uid(p)}`) });
    await eventually(() => server.openWatches() === 1);
    server.remove('p1');
    const second = server.put('p1').metadata.uid;
    await eventually(() => assert.deepEqual(seen, [`+${first}`, `-${first}`, `+${second}`]));
  });

  it('survives a handler that throws', async () => {
    start(
      {},
      {
        changed: () => {
          throw new Error('handler');
        },
      },
    );
    server.put('p1');
    server.put('p2');
    await eventually(() => assert.deepEqual(names(), ['p1', 'p2']));
    assert.ok(lines.some(({ msg }) => msg === 'proxy cache handler failed'));
  });

  it('survives a line that is no event and an object it cannot read', async () => {
    server.put('p1');
    start();
    await eventually(() => server.openWatches() === 1);
    server.sendLine({ hello: 'world' });
    await eventually(() => watches().length >= 2 && server.openWatches() === 1);
    server.put('p1', { port: 'squid' });
    server.put('p2');
    await eventually(() => assert.deepEqual(names(), ['p1', 'p2']));
    assert.equal(cache?.list()[0]?.spec.port, 3128);
  });

  it('comes back when the API server was away, and says each trouble once', async () => {
    server.put('p1');
    start();
    await eventually(() => server.openWatches() === 1);
    server.refusals.set('/proxies', 503);
    server.breakWatches();
    const before = server.requests.length;
    await eventually(() => server.requests.length > before + 4);
    const warnings = lines.filter(({ msg }) => msg === 'proxy watch failed');
    assert.ok(warnings.length <= 2, `${warnings.length} warnings`);
    server.refusals.clear();
    server.put('p2');
    await eventually(() => assert.deepEqual(names(), ['p1', 'p2']));
    assert.ok(lines.some(({ msg }) => msg === 'proxy watch is back'));
  });

  it('names the RBAC rule when it may not list', async () => {
    server.refusals.set('/proxies', 403);
    start();
    await eventually(() => {
      const text = JSON.stringify(lines);
      assert.match(text, /«proxies: get, list, watch»/);
    });
  });

  it('keeps no cloud-init', async () => {
    // kubectl keeps a copy of what it applied.
    const applied = 'kubectl.kubernetes.io/last-applied-configuration';
    const annotations = { [applied]: '{"spec":{"cloudInit":"CANARY"}}', other: 'kept' };
    server.put('p1', { cloudInit: '#cloud-config CANARY' }, { annotations });
    start();
    await eventually(() => assert.deepEqual(names(), ['p1']));
    assert.ok(!JSON.stringify(cache?.list()).includes('CANARY'));
    assert.deepEqual(cache?.list()[0]?.metadata.annotations, { other: 'kept' });
  });
});
