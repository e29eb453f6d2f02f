/** The cache against an API server over TLS that misbehaves: each way in which a watch was seen to fail in public reports. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { KubeConfig } from '@kubernetes/client-node';
import { createKubernetesClient } from '../../../activities/kubernetes/client.ts';
import type { KubernetesClient } from '../../../activities/kubernetes/client.ts';
import { ProxyCache, type CachePace } from '../../../activities/kubernetes/proxyCache.ts';
import { eventually } from '../../support/eventually.ts';
import { startHttpsPeer, type HttpsPeer, type SeenRequest } from '../../support/httpsPeer.ts';
import { recordingLog } from '../../support/recordingLog.ts';
import { makeCa, type TestCa } from '../../support/tls.ts';

type Json = Record<string, unknown>;

const boundMs = 300;
const quick: CachePace = {
  pageSize: 2,
  idleMs: 5_000,
  fullListMs: 60_000,
  overdueMs: 0,
  steadyMs: 5_000,
  retryFirstMs: 20,
  retryMaxMs: 160,
};

describe('the Proxy cache and a troubled API server', () => {
  let ca: TestCa;
  let certificate: { key: string; cert: string };
  let peer: HttpsPeer;
  let client: KubernetesClient;
  let cache: ProxyCache | undefined;
  let objects: Json[];
  let version: number;
  let watches: ServerResponse[];
  /** How a list and a watch are answered; replaced by each test. */
  let onList: (url: URL, response: ServerResponse) => void;
  let onWatch: (url: URL, response: ServerResponse) => void;
  const { log, lines } = recordingLog();

  before(async () => {
    ca = await makeCa();
    certificate = await ca.issue(['127.0.0.1']);
  });
  after(() => rmSync(ca.dir, { recursive: true }));
  beforeEach(async () => {
    [objects, version, watches] = [[], 1_000, []];
    lines.length = 0;
    [onList, onWatch] = [listOf, openWatch];
    peer = await startHttpsPeer(certificate, answer);
    const config = new KubeConfig();
    const caData = Buffer.from(ca.caPem).toString('base64');
    const cluster = { name: 'peer', server: peer.url, caData, skipTLSVerify: false };
    config.loadFromClusterAndUser(cluster, { name: 'peer' });
    client = createKubernetesClient(config, boundMs);
  });
  afterEach(async () => {
    await cache?.stop();
    await client.close();
    await peer.close();
  });

  function answer({ url }: SeenRequest, response: ServerResponse): void {
    response.on('error', () => undefined);
    const parsed = new URL(url, peer.url);
    if (parsed.searchParams.has('watch')) onWatch(parsed, response);
    else onList(parsed, response);
  }
  function send(response: ServerResponse, status: number, body: unknown): void {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  }
  function refuse(status: number, reason: string) {
    return (_url: URL, response: ServerResponse): void =>
      send(response, status, { kind: 'Status', code: status, reason, message: `${reason}!` });
  }
  function listOf(url: URL, response: ServerResponse): void {
    const limit = Number(url.searchParams.get('limit') ?? '100000');
    const from = Number(url.searchParams.get('continue') ?? '0');
    const next = from + limit < objects.length ? { continue: String(from + limit) } : {};
    const metadata = { resourceVersion: String(version), ...next };
    send(response, 200, { metadata, items: objects.slice(from, from + limit) });
  }
  function openWatch(_url: URL, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    watches.push(response);
    response.on('close', () => {
      watches = watches.filter((watch) => watch !== response);
    });
  }
  /** Stores an object and returns it; `tell` sends what watches deliver. */
  function put(name: string, port = 3128): Json {
    version += 1;
    const metadata = { name, namespace: 'egress', uid: name, generation: 1, resourceVersion: String(version) }; // prettier-ignore
    const object = { metadata, spec: { mode: 'External', address: '192.0.2.7', port } };
    objects = [...objects.filter((one) => nameOf(one) !== name), object];
    return object;
  }
  const nameOf = (object: Json): unknown => Object(object['metadata']).name;
  function tell(type: string, object: Json): void {
    for (const watch of watches) watch.write(`${JSON.stringify({ type, object })}\n`);
  }
  function start(pace: Partial<CachePace> = {}): ProxyCache {
    cache = new ProxyCache({ client, log, pace: { ...quick, ...pace } });
    return cache;
  }
  const seen = (): string[] =>
    (cache?.list() ?? []).map(({ metadata, spec }) => `${metadata.name}:${spec.port}`).sort();
  const requests = (watch: boolean): URL[] =>
    peer.requests
      .map(({ url }) => new URL(url, peer.url))
      .filter(({ searchParams }) => searchParams.has('watch') === watch);
  /** Without those that only ask for the newest version. */
  const lists = () =>
    requests(false).filter(({ searchParams }) => searchParams.get('limit') !== '1');
  const warnings = () => lines.filter(({ level }) => Number(level) >= 40);
  const watching = () => eventually(() => watches.length === 1);

  it('reads everything in one piece when the continue token has expired between two pages', async () => {
    for (const name of ['p1', 'p2', 'p3', 'p4', 'p5']) put(name);
    onList = (url, response) =>
      url.searchParams.has('continue')
        ? refuse(410, 'Expired')(url, response)
        : listOf(url, response);
    start();
    await eventually(() => assert.equal(seen().length, 5));
    const limits = lists().map(({ searchParams }) => searchParams.get('limit'));
    assert.deepEqual(limits, ['2', '2', null]);
  });

  it('takes an empty list that is written as null', async () => {
    onList = (_url, response) =>
      send(response, 200, { metadata: { resourceVersion: '1' }, items: null });
    start();
    await eventually(() => cache?.synced() === true);
    assert.deepEqual(seen(), []);
  });

  it('keeps what it knows when an answer is no list, and says so without quoting it', async () => {
    put('p1');
    start({ fullListMs: 50, steadyMs: 0 });
    await eventually(() => assert.deepEqual(seen(), ['p1:3128']));
    onList = (_url, response) => send(response, 200, { items: 'CANARY' });
    await eventually(() => warnings().length > 0);
    assert.deepEqual(seen(), ['p1:3128']);
    assert.match(JSON.stringify(lines), /the answer is no list of Proxies/);
    assert.ok(!JSON.stringify(lines).includes('CANARY'));
  });

  it('watches on while lists fail, and says it once', async () => {
    put('p1');
    start({ fullListMs: 100, steadyMs: 0 });
    await eventually(() => assert.deepEqual(seen(), ['p1:3128']));
    onList = refuse(500, 'InternalError');
    const earlier = lists().length;
    await eventually(() => lists().length >= earlier + 3);
    await watching();
    tell('ADDED', put('p2'));
    await eventually(() => assert.deepEqual(seen(), ['p1:3128', 'p2:3128']));
    const told = warnings().filter(({ msg }) => msg === 'proxies not listed, watched on');
    assert.equal(told.length, 1);
    onList = listOf;
    const failed = lists().length;
    await eventually(() => lists().length > failed);
  });

  it('sees by lists what watches that are closed at once do not tell, ever more slowly', async () => {
    onWatch = (_url, response) => void response.writeHead(200).end();
    start();
    await eventually(() => cache?.synced() === true);
    put('p1');
    await eventually(() => assert.deepEqual(seen(), ['p1:3128']));
    const fromMs = Date.now();
    const earlier = peer.requests.length;
    await eventually(() => Date.now() - fromMs > 1_000);
    // Every 160 to 200 ms a look at the version, a list and a watch.
    const perSecond = peer.requests.length - earlier;
    assert.ok(perSecond <= 24, String(perSecond));
    assert.ok(warnings().some(({ err }) => /closes every watch/.test(JSON.stringify(err))));
  });

  it('goes back to watching alone when a watch stays open', async () => {
    onWatch = (_url, response) => void response.writeHead(200).end();
    start({ steadyMs: 200, idleMs: 300 });
    await eventually(() => lists().length >= 3);
    onWatch = openWatch;
    await watching();
    // Closed by the idle timer after it was steady, it is opened again without a list.
    await eventually(() => watches.length === 0);
    const earlier = lists().length;
    await watching();
    assert.equal(lists().length, earlier);
    assert.ok(lines.some(({ msg }) => msg === 'proxy watch is back'));
  });

  it('lives by lists where it may not watch, and names the rule that is missing', async () => {
    onWatch = refuse(403, 'Forbidden');
    start();
    await eventually(() => cache?.synced() === true);
    put('p1');
    await eventually(() => assert.deepEqual(seen(), ['p1:3128']));
    await eventually(() => assert.match(JSON.stringify(warnings()), /«proxies: get, list, watch»/));
  });

  it('lists no more because an API server has too much to do', async () => {
    onWatch = refuse(429, 'TooManyRequests');
    start();
    await eventually(() => requests(true).length >= 6);
    assert.equal(lists().length, 1);
  });

  it('opens a watch that told something and was cut soon again, and not at once', async () => {
    const times: number[] = [];
    onWatch = (url, response) => {
      times.push(Date.now());
      openWatch(url, response);
      response.end(`${JSON.stringify({ type: 'MODIFIED', object: put('p1', times.length) })}\n`);
    };
    start({ retryFirstMs: 50, retryMaxMs: 5_000 });
    await eventually(() => times.length >= 8);
    const pauses = times.slice(1).map((atMs, index) => atMs - (times[index] ?? 0));
    assert.ok(
      pauses.every((pauseMs) => pauseMs >= 48),
      String(pauses),
    );
    // Were each counted as a failure of its own, the seventh pause would be 3.2 s.
    assert.ok(
      pauses.every((pauseMs) => pauseMs < 1_500),
      String(pauses),
    );
    assert.equal(lists().length, 1);
  });

  for (const [title, status] of [
    ['a code', { code: 410, message: 'too old resource version' }],
    ['a reason alone', { reason: 'Expired' }],
    ['a reason and another code', { code: 500, reason: 'Gone' }],
  ] as const) {
    it(`lists again after an ERROR that means 410 by ${title}`, async () => {
      start();
      await watching();
      tell('ERROR', status);
      await eventually(() => lists().length === 2);
    });
  }

  it('goes on from its version after an ERROR that says nothing', async () => {
    put('p1');
    start();
    await watching();
    for (const watch of watches) watch.end('{"type":"ERROR"}\n{"type":"ERROR","object":null}\n');
    await eventually(() => requests(true).length === 2);
    await watching();
    tell('MODIFIED', put('p1', 8080));
    await eventually(() => assert.deepEqual(seen(), ['p1:8080']));
    assert.equal(lists().length, 1);
  });

  it('lists again when a bookmark goes back: the store of the API server was restored', async () => {
    put('p1');
    put('p2');
    start();
    await watching();
    objects = objects.filter((object) => nameOf(object) !== 'p2');
    version = 500;
    tell('BOOKMARK', { kind: 'Proxy', metadata: { resourceVersion: '510' } });
    await eventually(() => assert.deepEqual(seen(), ['p1:3128']));
    assert.ok(lines.some(({ msg }) => msg === 'proxy watch failed'));
    await watching();
    version = 520;
    tell('ADDED', put('p3'));
    await eventually(() => assert.deepEqual(seen(), ['p1:3128', 'p3:3128']));
  });

  it('does not go on from a version that the API server has not reached: its store was set back', async () => {
    put('p1');
    put('p2');
    start();
    await watching();
    // Such a watch is opened, and tells nothing.
    objects = objects.filter((object) => nameOf(object) !== 'p2');
    version = 500;
    for (const watch of watches) watch.destroy();
    await eventually(() => assert.deepEqual(seen(), ['p1:3128']));
    await watching();
    assert.equal(requests(true).at(-1)?.searchParams.get('resourceVersion'), '500');
    assert.ok(lines.some(({ msg }) => msg === 'kubernetes went back to an older state'));
  });

  it('looks at the version after a watch that ended by itself, and at nothing else', async () => {
    put('p1');
    put('p2');
    start();
    await watching();
    for (const watch of watches) watch.destroy();
    await eventually(() => requests(true).length === 2);
    const kinds = peer.requests.map(({ url }) => /watch|limit=1(?!\d)|limit/.exec(url)?.[0]);
    assert.deepEqual(kinds, ['limit', 'watch', 'limit=1', 'watch']);
  });

  it('says that Kubernetes went back when a list is older than what was known', async () => {
    put('p1');
    start({ fullListMs: 100, steadyMs: 0 });
    await watching();
    version = 10;
    put('p1', 8080);
    await eventually(() => assert.deepEqual(seen(), ['p1:8080']));
    const told = lines.filter(({ msg }) => msg === 'kubernetes went back to an older state');
    assert.equal(told.length, 1);
  });

  it('never goes on from an older version because an event came late', async () => {
    const old = put('p1');
    put('p2');
    start({ idleMs: 200, steadyMs: 0 });
    await watching();
    tell('MODIFIED', old);
    tell('ADDED', { ...old, metadata: { ...Object(old['metadata']), uid: 'p0', name: 'p0' } });
    await eventually(() => assert.equal(seen().length, 3));
    await eventually(() => requests(true).length >= 2);
    const versions = requests(true).map(({ searchParams }) => searchParams.get('resourceVersion'));
    assert.deepEqual(new Set(versions), new Set([String(version)]));
  });

  it('reads lines however they are cut, in the middle of a letter too', async () => {
    start();
    await watching();
    const object = put('p1');
    Object.assign(Object(object['metadata']), { labels: { team: 'ä€😀' } });
    const bytes = Buffer.from(`\n${JSON.stringify({ type: 'ADDED', object })}\n \n`);
    for (const byte of bytes) {
      for (const watch of watches) watch.write(Buffer.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await eventually(() => assert.equal(cache?.list()[0]?.metadata.labels['team'], 'ä€😀'));
  });

  it('gives up a line that never ends, and opens the watch again', async () => {
    start();
    await watching();
    for (const watch of watches) watch.write(Buffer.alloc(17 * 1024 * 1024, 'x'));
    await eventually(() => requests(true).length === 2);
    assert.match(JSON.stringify(warnings()), /a line without an end/);
    await watching();
    tell('ADDED', put('p1'));
    await eventually(() => assert.deepEqual(seen(), ['p1:3128']));
  });

  it('shows no part of a line that it cannot read', async () => {
    start();
    await watching();
    for (const watch of watches) watch.write('CANARY: no JSON\n');
    await eventually(() => warnings().length > 0);
    assert.ok(!JSON.stringify(lines).includes('CANARY'));
  });

  it('waits for no answer that does not come, to a list or to a watch', async () => {
    onList = () => undefined;
    start();
    await eventually(() => lists().length >= 2);
    onList = listOf;
    onWatch = () => undefined;
    await eventually(() => requests(true).length >= 2);
    assert.match(JSON.stringify(warnings()), /TimeoutError.*HeadersTimeoutError/);
    onWatch = openWatch;
    await watching();
    tell('ADDED', put('p1'));
    await eventually(() => assert.deepEqual(seen(), ['p1:3128']));
  });

  it('takes a list that falls due before the watch is open for no failure of the watch', async () => {
    onWatch = () => undefined;
    start({ fullListMs: 50, steadyMs: 0 });
    await eventually(() => lists().length >= 4);
    assert.deepEqual(warnings(), []);
  });

  it('takes a refusal whose text never ends for a failure', async () => {
    onWatch = (_url, response) => {
      response.writeHead(500).write('{"kind":"Status",');
    };
    start({ idleMs: 100 });
    await eventually(() => requests(true).length >= 3);
    assert.ok(warnings().some(({ msg }) => msg === 'proxy watch failed'));
  });

  it('lists in time although the clock is set back by an hour', async (t) => {
    start({ fullListMs: 150, steadyMs: 0 });
    await watching();
    const real = Date.now.bind(Date);
    t.mock.method(Date, 'now', () => real() - 3_600_000);
    const earlier = lists().length;
    await eventually(() => lists().length >= earlier + 2);
  });
});
