/** Lists and versions: what the cache does when pages expire, lists fail, or the API server was set back. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import {
  eachWithTroubledApi,
  refuse,
  sendJson,
  type TroubledApi,
} from '../../support/troubledApi.ts';

describe('the Proxy cache, its lists and versions', () => {
  let api: TroubledApi;
  eachWithTroubledApi((started) => {
    api = started;
  });

  it('reads everything in one piece when the continue token has expired between two pages', async () => {
    for (const name of ['p1', 'p2', 'p3', 'p4', 'p5']) api.put(name);
    api.onList = (url, response) =>
      url.searchParams.has('continue')
        ? refuse(410, 'Expired')(url, response)
        : api.list(url, response);
    api.startCache();
    await eventually(() => assert.equal(api.seen().length, 5));
    const limits = api.lists().map(({ searchParams }) => searchParams.get('limit'));
    assert.deepEqual(limits, ['2', '2', null]);
  });

  it('takes an empty list that is written as null', async () => {
    api.onList = (_url, response) =>
      sendJson(response, 200, { metadata: { resourceVersion: '1' }, items: null });
    api.startCache();
    await eventually(() => api.cache?.synced() === true);
    assert.deepEqual(api.seen(), []);
  });

  it('keeps what it knows when an answer is no list, and says so without quoting it', async () => {
    api.put('p1');
    api.startCache({ fullListMs: 50, steadyMs: 0 });
    await eventually(() => assert.deepEqual(api.seen(), ['p1:3128']));
    api.onList = (_url, response) => sendJson(response, 200, { items: 'CANARY' });
    await eventually(() => api.warnings().length > 0);
    assert.deepEqual(api.seen(), ['p1:3128']);
    assert.match(JSON.stringify(api.lines()), /the answer is no list of Proxies/);
    assert.ok(!JSON.stringify(api.lines()).includes('CANARY'));
  });

  it('watches on while lists fail, and says it once', async () => {
    api.put('p1');
    api.startCache({ fullListMs: 100, steadyMs: 0 });
    await eventually(() => assert.deepEqual(api.seen(), ['p1:3128']));
    api.onList = refuse(500, 'InternalError');
    const earlier = api.lists().length;
    await eventually(() => api.lists().length >= earlier + 3);
    await api.untilWatched();
    api.tell('ADDED', api.put('p2'));
    await eventually(() => assert.deepEqual(api.seen(), ['p1:3128', 'p2:3128']));
    const told = api.warnings().filter(({ msg }) => msg === 'proxies not listed, watched on');
    assert.equal(told.length, 1);
    api.onList = (url, response) => api.list(url, response);
    const failed = api.lists().length;
    await eventually(() => api.lists().length > failed);
  });

  it('lists again when a bookmark goes back: the store of the API server was restored', async () => {
    api.put('p1');
    api.put('p2');
    api.startCache();
    await api.untilWatched();
    api.forget('p2');
    api.version = 500;
    api.tell('BOOKMARK', { kind: 'Proxy', metadata: { resourceVersion: '510' } });
    await eventually(() => assert.deepEqual(api.seen(), ['p1:3128']));
    assert.ok(api.lines().some(({ msg }) => msg === 'proxy watch failed'));
    await api.untilWatched();
    api.version = 520;
    api.tell('ADDED', api.put('p3'));
    await eventually(() => assert.deepEqual(api.seen(), ['p1:3128', 'p3:3128']));
  });

  it('does not go on from a version that the API server has not reached: its store was set back', async () => {
    api.put('p1');
    api.put('p2');
    api.startCache();
    await api.untilWatched();
    // Such a watch is opened, and tells nothing.
    api.forget('p2');
    api.version = 500;
    for (const watch of api.watches) watch.destroy();
    await eventually(() => assert.deepEqual(api.seen(), ['p1:3128']));
    await api.untilWatched();
    assert.equal(api.watchesAsked().at(-1)?.searchParams.get('resourceVersion'), '500');
    assert.ok(api.lines().some(({ msg }) => msg === 'kubernetes went back to an older state'));
  });

  it('looks at the version after a watch that ended by itself, and at nothing else', async () => {
    api.put('p1');
    api.put('p2');
    api.startCache();
    await api.untilWatched();
    for (const watch of api.watches) watch.destroy();
    await eventually(() => api.watchesAsked().length === 2);
    const kinds = api.asked().map(({ search }) => /watch|limit=1(?!\d)|limit/.exec(search)?.[0]);
    assert.deepEqual(kinds, ['limit', 'watch', 'limit=1', 'watch']);
  });

  it('says that Kubernetes went back when a list is older than what was known', async () => {
    api.put('p1');
    api.startCache({ fullListMs: 100, steadyMs: 0 });
    await api.untilWatched();
    api.version = 10;
    api.put('p1', 8080);
    await eventually(() => assert.deepEqual(api.seen(), ['p1:8080']));
    const told = api.lines().filter(({ msg }) => msg === 'kubernetes went back to an older state');
    assert.equal(told.length, 1);
  });

  it('never goes on from an older version because an event came late', async () => {
    const old = api.put('p1');
    api.put('p2');
    api.startCache({ idleMs: 200, steadyMs: 0 });
    await api.untilWatched();
    api.tell('MODIFIED', old);
    api.tell('ADDED', { ...old, metadata: { ...Object(old['metadata']), uid: 'p0', name: 'p0' } });
    await eventually(() => assert.equal(api.seen().length, 3));
    await eventually(() => api.watchesAsked().length >= 2);
    const versions = api
      .watchesAsked()
      .map(({ searchParams }) => searchParams.get('resourceVersion'));
    assert.deepEqual(new Set(versions), new Set([String(api.version)]));
  });

  it('takes a list that falls due before the watch is open for no failure of the watch', async () => {
    api.onWatch = () => undefined;
    api.startCache({ fullListMs: 50, steadyMs: 0 });
    await eventually(() => api.lists().length >= 4);
    assert.deepEqual(api.warnings(), []);
  });

  it('lists in time although the clock is set back by an hour', async (t) => {
    api.startCache({ fullListMs: 150, steadyMs: 0 });
    await api.untilWatched();
    const real = Date.now.bind(Date);
    t.mock.method(Date, 'now', () => real() - 3_600_000);
    const earlier = api.lists().length;
    await eventually(() => api.lists().length >= earlier + 2);
  });
});
