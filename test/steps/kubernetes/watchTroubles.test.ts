/** The watch: each way in which one was seen to fail in public reports. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { eachWithTroubledApi, refuse, type TroubledApi } from '../../support/troubledApi.ts';

describe('the Proxy cache and a watch in trouble', () => {
  let api: TroubledApi;
  eachWithTroubledApi((started) => {
    api = started;
  });

  it('sees by lists what watches that are closed at once do not tell, ever more slowly', async () => {
    api.onWatch = (_url, response) => void response.writeHead(200).end();
    api.startCache();
    await eventually(() => api.cache?.synced() === true);
    api.put('p1');
    await eventually(() => assert.deepEqual(api.seen(), ['p1:3128']));
    const [fromMs, earlier] = [Date.now(), api.asked().length];
    await eventually(() => api.asked().length >= earlier + 12);
    // Every 160 to 200 ms a look at the version, a list and a watch.
    const tookMs = Date.now() - fromMs;
    assert.ok(tookMs >= 3 * 160 - 20, `twelve requests within ${tookMs} ms`);
    assert.ok(api.warnings().some(({ err }) => /closes every watch/.test(JSON.stringify(err))));
  });

  it('goes back to watching alone when a watch stays open', async () => {
    api.onWatch = (_url, response) => void response.writeHead(200).end();
    api.startCache({ steadyMs: 200, idleMs: 300 });
    await eventually(() => api.lists().length >= 3);
    api.onWatch = (_url, response) => api.openWatch(response);
    await api.untilWatched();
    // Closed by the idle timer after it was steady, it is opened again without a list.
    await eventually(() => api.watches.length === 0);
    const earlier = api.lists().length;
    await api.untilWatched();
    assert.equal(api.lists().length, earlier);
    assert.ok(api.lines().some(({ msg }) => msg === 'proxy watch is back'));
  });

  it('lives by lists where it may not watch, and names the rule that is missing', async () => {
    api.onWatch = refuse(403, 'Forbidden');
    api.startCache();
    await eventually(() => api.cache?.synced() === true);
    api.put('p1');
    await eventually(() => assert.deepEqual(api.seen(), ['p1:3128']));
    await eventually(() =>
      assert.match(JSON.stringify(api.warnings()), /«proxies: get, list, watch»/),
    );
  });

  it('lists no more because an API server has too much to do', async () => {
    api.onWatch = refuse(429, 'TooManyRequests');
    api.startCache();
    await eventually(() => api.watchesAsked().length >= 6);
    assert.equal(api.lists().length, 1);
  });

  it('opens a watch that told something and was cut soon again, and not at once', async () => {
    const times: number[] = [];
    api.onWatch = (_url, response) => {
      times.push(Date.now());
      api.openWatch(response);
      response.end(
        `${JSON.stringify({ type: 'MODIFIED', object: api.put('p1', times.length) })}\n`,
      );
    };
    api.startCache({ retryFirstMs: 50, retryMaxMs: 5_000 });
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
    assert.equal(api.lists().length, 1);
  });

  for (const [title, status] of [
    ['a code', { code: 410, message: 'too old resource version' }],
    ['a reason alone', { reason: 'Expired' }],
    ['a reason and another code', { code: 500, reason: 'Gone' }],
  ] as const) {
    it(`lists again after an ERROR that means 410 by ${title}`, async () => {
      api.startCache();
      await api.untilWatched();
      api.tell('ERROR', status);
      await eventually(() => api.lists().length === 2);
    });
  }

  it('goes on from its version after an ERROR that says nothing', async () => {
    api.put('p1');
    api.startCache();
    await api.untilWatched();
    for (const watch of api.watches)
      watch.end('{"type":"ERROR"}\n{"type":"ERROR","object":null}\n');
    await eventually(() => api.watchesAsked().length === 2);
    await api.untilWatched();
    api.tell('MODIFIED', api.put('p1', 8080));
    await eventually(() => assert.deepEqual(api.seen(), ['p1:8080']));
    assert.equal(api.lists().length, 1);
  });

  it('reads lines however they are cut, in the middle of a letter too', async () => {
    api.startCache();
    await api.untilWatched();
    const object = api.put('p1');
    Object.assign(Object(object['metadata']), { labels: { team: 'ä€😀' } });
    const bytes = Buffer.from(`\n${JSON.stringify({ type: 'ADDED', object })}\n \n`);
    for (const byte of bytes) {
      for (const watch of api.watches) watch.write(Buffer.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await eventually(() => assert.equal(api.cache?.list()[0]?.metadata.labels['team'], 'ä€😀'));
  });

  it('gives up a line that never ends, and opens the watch again', async () => {
    api.startCache();
    await api.untilWatched();
    for (const watch of api.watches) watch.write(Buffer.alloc(17 * 1024 * 1024, 'x'));
    await eventually(() => api.watchesAsked().length === 2);
    assert.match(JSON.stringify(api.warnings()), /a line without an end/);
    await api.untilWatched();
    api.tell('ADDED', api.put('p1'));
    await eventually(() => assert.deepEqual(api.seen(), ['p1:3128']));
  });

  it('shows no part of a line that it cannot read', async () => {
    api.startCache();
    await api.untilWatched();
    for (const watch of api.watches) watch.write('CANARY: no JSON\n');
    await eventually(() => api.warnings().length > 0);
    assert.ok(!JSON.stringify(api.lines()).includes('CANARY'));
  });

  it('waits for no answer that does not come, to a list or to a watch', async () => {
    api.onList = () => undefined;
    api.startCache();
    await eventually(() => api.lists().length >= 2);
    api.onList = (url, response) => api.list(url, response);
    api.onWatch = () => undefined;
    await eventually(() => api.watchesAsked().length >= 2);
    assert.match(JSON.stringify(api.warnings()), /TimeoutError.*HeadersTimeoutError/);
    api.onWatch = (_url, response) => api.openWatch(response);
    await api.untilWatched();
    api.tell('ADDED', api.put('p1'));
    await eventually(() => assert.deepEqual(api.seen(), ['p1:3128']));
  });

  it('takes a refusal whose text never ends for a failure', async () => {
    api.onWatch = (_url, response) => {
      response.writeHead(500).write('{"kind":"Status",');
    };
    api.startCache({ idleMs: 100 });
    await eventually(() => api.watchesAsked().length >= 3);
    assert.ok(api.warnings().some(({ msg }) => msg === 'proxy watch failed'));
  });
});
