import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createDiscovery } from '../../../controller/discovery.ts';
import type { Proxy } from '../../../api/proxy.ts';
import { aProxy } from '../../support/aProxy.ts';

const ready = { phase: 'Ready', healthy: true };

function named(name: string, fields: Parameters<typeof aProxy>[0] = {}): Proxy {
  return aProxy({
    ...fields,
    metadata: { name, uid: name, creationTimestamp: '2026-01-01T00:00:00Z', ...fields.metadata },
  });
}

async function ask(
  proxies: Proxy[],
  query = '',
  headers: Record<string, string> = { accept: 'text/plain' },
  syncedMs: number | null = 1_000,
) {
  const view = { list: () => proxies, synced: () => syncedMs !== null, lastSyncMs: () => syncedMs };
  const server = createDiscovery(
    view,
    () => 'noWorkers',
    () => 43_000,
  );
  const answer = await server.inject({ url: `/v1/proxies${query}`, headers });
  await server.close();
  return answer;
}
const lines = async (proxies: Proxy[], query = ''): Promise<string[]> =>
  (await ask(proxies, query)).body.split('\n').filter((line) => line !== '');

describe('the discovery API', () => {
  it('lists ready Proxies one ip:port per line', async () => {
    const proxies = [
      named('b', { status: { ...ready, ip: '10.0.0.2' } }),
      named('a', { status: { ...ready, ip: '10.0.0.1' }, spec: { port: 8888 } }),
      named('c', { status: { phase: 'Running', healthy: false, ip: '10.0.0.3' } }),
      named('d', { status: { phase: 'Provisioning' } }),
    ];
    assert.deepEqual(await lines(proxies), ['10.0.0.1:8888', '10.0.0.2:3128']);
    assert.deepEqual(await lines(proxies, '?ready=false'), ['10.0.0.3:3128']);
    assert.equal((await lines(proxies, '?ready=all')).length, 3);
  });

  it('puts IPv6 addresses into brackets', async () => {
    const proxy = named('a', { status: { ...ready, ip: '2001:db8::7' } });
    assert.deepEqual(await lines([proxy]), ['[2001:db8::7]:3128']);
  });

  it('drops a Proxy the moment it is under deletion', async () => {
    const status = { ...ready, ip: '10.0.0.1' };
    const proxy = named('a', { metadata: { deletionTimestamp: '2026-01-02T00:00:00Z' }, status });
    assert.deepEqual(await lines([proxy], '?ready=all'), []);
  });

  it('shows no address twice: a ready Proxy wins, then the older one', async () => {
    const at = (name: string, createdYear: number, status: object) =>
      named(name, {
        metadata: { creationTimestamp: `${createdYear}-01-01T00:00:00Z` },
        status: { ip: '10.0.0.1', ...status },
      });
    const proxies = [
      at('old', 2020, { phase: 'Running', healthy: false }),
      at('young', 2025, ready),
      at('middle', 2023, ready),
    ];
    const answer = await ask(proxies, '?ready=all', {});
    assert.deepEqual(
      JSON.parse(answer.body).proxies.map(({ name }: { name: string }) => name),
      ['middle'],
    );
  });

  it('shows an address once although the query hides its winner', async () => {
    const proxies = [
      named('a', { status: { ...ready, ip: '10.0.0.1' } }),
      named('b', { status: { phase: 'Running', healthy: false, ip: '10.0.0.1' } }),
    ];
    assert.deepEqual(await lines(proxies, '?ready=false'), []);
  });

  it('filters by provider, namespace and labels', async () => {
    const proxies = [
      named('a', { metadata: { labels: { tier: 'x' } }, status: { ...ready, ip: '10.0.0.1' } }),
      named('b', { metadata: { namespace: 'other' }, status: { ...ready, ip: '10.0.0.2' } }),
      named('c', { spec: { provider: 'away' }, status: { ...ready, ip: '10.0.0.3' } }),
    ];
    assert.deepEqual(await lines(proxies, '?selector=tier%20in%20(x,y)'), ['10.0.0.1:3128']);
    assert.deepEqual(await lines(proxies, '?namespace=other'), ['10.0.0.2:3128']);
    assert.deepEqual(await lines(proxies, '?provider=away'), ['10.0.0.3:3128']);
  });

  it('answers JSON by default, with the age of the watch and no credentials', async () => {
    const proxy = named('a', {
      spec: { auth: { secretRef: { name: 'CANARY' } } },
      status: { ...ready, ip: '10.0.0.1' },
    });
    const answer = await ask([proxy], '', { accept: '*/*' });
    assert.match(answer.headers['content-type']?.toString() ?? '', /application\/json/);
    assert.equal(answer.headers['x-watch-age'], '42');
    assert.equal(answer.headers['x-temporal'], 'noWorkers');
    assert.ok(!answer.body.includes('CANARY'));
    assert.deepEqual(JSON.parse(answer.body).proxies[0], {
      namespace: 'egress',
      name: 'a',
      address: '10.0.0.1:3128',
      ip: '10.0.0.1',
      port: 3128,
      mode: 'Managed',
      provider: 'home',
      ready: true,
      healthy: true,
      phase: 'Ready',
      labels: {},
    });
  });

  for (const [accept, type] of [
    ['text/plain', 'text/plain'],
    ['text/plain;q=0.5, application/json', 'application/json'],
    ['application/json;q=0.5, text/plain', 'text/plain'],
    ['text/html, */*', 'application/json'],
    ['text/plain;q=0', 'application/json'],
  ] as const) {
    it(`answers «${accept}» with ${type}`, async () => {
      const { headers } = await ask([], '', { accept });
      assert.ok(headers['content-type']?.toString().startsWith(type));
    });
  }

  it('answers 503 before the first list', async () => {
    const answer = await ask([], '', {}, null);
    assert.equal(answer.statusCode, 503);
    assert.match(answer.body, /not been read/);
  });

  for (const query of ['?ready=maybe', '?selector=a%3Db%3Dc', '?redy=true', '?provider=']) {
    it(`answers 400 to ${query} and says what is wrong`, async () => {
      const answer = await ask([], query);
      assert.equal(answer.statusCode, 400);
      assert.ok(JSON.parse(answer.body).error.length > 10);
    });
  }
});
