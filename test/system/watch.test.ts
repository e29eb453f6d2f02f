/** The watch of Proxies against a real API server and etcd: what they do when they forget, restart or are set back. */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { KubeConfig } from '@kubernetes/client-node';
import { createKubernetesClient } from '../../activities/kubernetes/client.ts';
import type { KubernetesClient } from '../../activities/kubernetes/client.ts';
import { ProxyCache } from '../../activities/kubernetes/proxyCache.ts';
import { eventually } from '../support/eventually.ts';
import { recordingLog } from '../support/recordingLog.ts';
import { startApiServer, type ApiServer } from './support/apiserver.ts';

const crds = fileURLToPath(new URL('../../deploy/crds', import.meta.url));
const rbac = fileURLToPath(new URL('../../deploy/base/rbac', import.meta.url));

describe('the watch of Proxies at a real API server', { timeout: 300_000 }, () => {
  let server: ApiServer;
  let client: KubernetesClient;
  let cache: ProxyCache;
  /** Watches opened. */
  let watches: number;
  /** What happens right after a list was answered. */
  let afterList: () => Promise<void>;
  let deleted: string[];
  const { log, lines } = recordingLog();

  before(async () => {
    server = await startApiServer();
    await server.kubectl.must(['apply', '-f', crds]);
    await server.kubectl.must(['wait', '--for=condition=Established', '--timeout=60s', 'crd', '--all']); // prettier-ignore
    await server.kubectl.must(['create', 'namespace', 'egress-proxies-operator-system']);
    await server.kubectl.must(['apply', '-f', `${rbac}/controller.yaml`]);
  });
  beforeEach(async () => {
    [watches, deleted, afterList] = [0, [], () => Promise.resolve()];
    lines.length = 0;
    await put('p1');
    const config = new KubeConfig();
    config.loadFromFile(server.files.kubeconfigs.controller);
    client = createKubernetesClient(config);
    cache = new ProxyCache({
      client: observed(client),
      log,
      handlers: { deleted: ({ metadata }) => deleted.push(metadata.name) },
      pace: { pageSize: 2, retryFirstMs: 100, retryMaxMs: 500 },
    });
  });
  afterEach(async () => {
    await cache.stop();
    await client.close();
    await server.kubectl.must(['delete', 'proxies', '--all', '--wait=true']);
  });
  after(() => server.stop());

  function observed(inner: KubernetesClient): KubernetesClient {
    return {
      ...inner,
      send: async (request) => {
        const answer = await inner.send(request);
        await afterList();
        return answer;
      },
      stream: (path, query, signal) => {
        watches += 1;
        return inner.stream(path, query, signal);
      },
    };
  }
  async function put(name: string, port = 3128): Promise<void> {
    const input = JSON.stringify({
      apiVersion: 'egress-proxies.io/v1alpha1',
      kind: 'Proxy',
      metadata: { name, namespace: 'default' },
      spec: { mode: 'External', address: '192.0.2.7', port },
    });
    await server.kubectl.must(['apply', '-f', '-'], { input });
  }
  const remove = (name: string) => server.kubectl.must(['delete', 'proxy', name]);
  const seen = (): string[] =>
    cache.list().map(({ metadata, spec }) => `${metadata.name}:${spec.port}`).sort(); // prettier-ignore
  const untilSeen = (...proxies: string[]) =>
    eventually(() => assert.deepEqual(seen(), proxies), 60_000, 50);
  const watching = () => eventually(() => watches > 0, 60_000, 50);

  test('misses nothing while the API server is started again', async () => {
    await untilSeen('p1:3128');
    await watching();
    await server.restart();
    await put('p2');
    await remove('p1');
    await untilSeen('p2:3128');
    assert.deepEqual(deleted, ['p1']);
  });

  test('lists again when the version it would go on from was compacted, and misses nothing', async () => {
    await untilSeen('p1:3128');
    await watching();
    await put('p1', 8080);
    await put('p2');
    await server.compact();
    await server.restart();
    await untilSeen('p1:8080', 'p2:3128');
    await put('p3');
    await untilSeen('p1:8080', 'p2:3128', 'p3:3128');
  });

  test('misses nothing when the store forgets its past between two pages of a list', async () => {
    await cache.stop();
    for (const name of ['p2', 'p3', 'p4']) await put(name);
    let pages = 0;
    afterList = async () => {
      pages += 1;
      if (pages !== 1) return;
      await put('p5');
      await remove('p1');
      await server.compact();
    };
    cache = new ProxyCache({ client: observed(client), log, pace: { pageSize: 2 } });
    await untilSeen('p2:3128', 'p3:3128', 'p4:3128', 'p5:3128');
    assert.ok(pages >= 2);
  });

  test('takes a store that was set back as it is, and hears what comes after', async () => {
    await untilSeen('p1:3128');
    await put('old');
    await untilSeen('old:3128', 'p1:3128');
    const setBack = await server.keepStore();
    for (let port = 4_000; port < 4_010; port++) await put('p1', port);
    await put('new');
    await remove('old');
    await untilSeen('new:3128', 'p1:4009');
    await setBack();
    // From the version it had, a watch would be deaf until the store has got there again.
    await untilSeen('old:3128', 'p1:3128');
    assert.ok(lines.some(({ msg }) => msg === 'kubernetes went back to an older state'));
    assert.ok(deleted.includes('new'));
    await put('p1', 5_000);
    await untilSeen('old:3128', 'p1:5000');
  });
});
