/** Bounds of the Proxmox client: cuts, silence, cancellation, connections and the end of an attempt. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ProxmoxApi } from '../../activities/proxmox/api.ts';
import { createProxmoxApi } from '../../activities/proxmox/client.ts';
import { eventually } from '../support/eventually.ts';
import { answerData } from '../support/httpsPeer.ts';
import type { Answer } from '../support/httpsPeer.ts';
import { anAttempt, asWords, failureOf, upid, withRig } from '../support/proxmoxClient.ts';

describe('cuts, silence and cancellation', () => {
  it('a connection cut before or in an answer is Unreachable, unknown for a write, and not sent again', () =>
    withRig({}, async ({ api, peer }) => {
      const cuts: Answer[] = [
        (_request, response) => void response.socket?.destroy(),
        (_request, response) => {
          response.writeHead(200, { 'content-length': 1_000 });
          response.write('{"data":', () => response.socket?.destroy());
        },
      ];
      for (const cut of cuts) {
        peer.answer = cut;
        peer.requests.length = 0;
        const write = await failureOf(api().start('pve1', 110));
        assert.equal(asWords(write), 'Transient Unreachable provider');
        assert.equal(write.facts.outcomeUnknown, true);
        const read = await failureOf(api().listVms());
        assert.equal(asWords(read), 'Transient Unreachable provider');
        assert.equal(read.facts.outcomeUnknown, undefined);
        assert.equal(peer.requests.length, 2);
      }
    }));

  it('a cut upload says that a missing privilege looks the same', () =>
    withRig({ answer: (_request, response) => void response.socket?.destroy() }, async (rig) => {
      const upload = rig.api().uploadIso('pve1', 'seeds', 'a.iso', new Uint8Array(600_000));
      assert.match((await failureOf(upload)).message, /Datastore\.AllocateTemplate/);
    }));

  it('a request without an answer, or with half of one, ends at its bound', () =>
    withRig({ requestBoundMs: 80 }, async ({ api, peer }) => {
      const silences: Answer[] = [
        () => undefined,
        (_request, response) => {
          response.writeHead(200, { 'content-length': 1_000 });
          response.write('{"data":');
        },
      ];
      for (const silence of silences) {
        peer.answer = silence;
        const write = await failureOf(api().start('pve1', 110));
        assert.equal(asWords(write), 'Transient Timeout provider');
        assert.match(write.message, /start VM 110 on pve1 .*within 0\.08 s/);
        assert.equal(write.facts.outcomeUnknown, true);
        assert.equal((await failureOf(api().listVms())).facts.outcomeUnknown, undefined);
      }
    }));

  it('the bound of an upload grows by a second per MiB', () =>
    withRig({ requestBoundMs: 80 }, async ({ api, peer }) => {
      peer.answer = (_request, response) => void setTimeout(() => answerData(response, upid), 200);
      await failureOf(api().start('pve1', 110));
      assert.equal(await api().uploadIso('pve1', 'seeds', 'a.iso', new Uint8Array(100)), upid);
    }));

  it('a cancelled attempt ends its requests with the reason of the cancellation', () =>
    withRig({ answer: () => undefined }, async ({ api, peer }) => {
      const cancel = new AbortController();
      const call = api({ signal: cancel.signal }).start('pve1', 110);
      await eventually(() => peer.requests.length === 1);
      const reason = new Error('the workflow went on');
      cancel.abort(reason);
      await assert.rejects(call, reason);
      await assert.rejects(api({ signal: cancel.signal }).listVms(), reason);
      assert.equal(peer.requests.length, 1);
    }));
});

describe('limits', () => {
  it('a write leaves only if its bound ends before the attempt does', () =>
    withRig({ requestBoundMs: 30_000, now: () => 1_000_000 }, async ({ api, peer }) => {
      const late = await failureOf(api({ writesUntilMs: 1_029_999 }).start('pve1', 110));
      assert.equal(asWords(late), 'Transient Timeout provider');
      assert.match(late.message, /nothing was sent: the attempt ends in 29 s/);
      assert.equal(late.facts.outcomeUnknown, undefined);
      assert.equal(late.facts.remedy, undefined);
      const byAnotherClock = await failureOf(api({ writesUntilMs: 900_000 }).start('pve1', 110));
      assert.match(byAnotherClock.facts.remedy ?? '', /compare this worker's clock/);
      const upload = api({ writesUntilMs: 1_030_500 }).uploadIso(
        'pve1',
        'seeds',
        'a.iso',
        new Uint8Array(9),
      );
      await failureOf(upload);
      assert.equal(peer.requests.length, 0);
      await api({ writesUntilMs: 1_030_000 }).start('pve1', 110);
      peer.answer = (_request, response) => answerData(response, []);
      await api({ writesUntilMs: 0 }).listVms();
      assert.equal(peer.requests.length, 2);
    }));

  it('no write leaves after 20 s without an answer from Temporal; reads do', () =>
    withRig({ now: () => 1_000_000 }, async ({ api, peer }) => {
      const silent = await failureOf(api({ answeredAtMs: () => 979_999 }).start('pve1', 110));
      assert.equal(asWords(silent), 'Transient Timeout provider');
      assert.match(silent.message, /nothing was sent: Temporal has not answered/);
      const givenUp = failureOf(api({ answeredAtMs: () => -Infinity }).start('pve1', 110));
      assert.equal((await givenUp).facts.outcomeUnknown, undefined);
      assert.equal(peer.requests.length, 0);
      await api({ answeredAtMs: () => 980_000 }).start('pve1', 110);
      peer.answer = (_request, response) => answerData(response, []);
      await api({ answeredAtMs: () => 0 }).listVms();
      assert.equal(peer.requests.length, 2);
    }));

  it('at most 8 requests run at once, of which 4 writes, and waiting writes hold up no read', () =>
    withRig({}, async ({ api, peer }) => {
      const held: (() => void)[] = [];
      let holding = true;
      let running = { GET: 0, POST: 0 };
      const peak = { all: 0, writes: 0 };
      peer.answer = ({ method, url }, response) => {
        const kind = method === 'GET' ? 'GET' : 'POST';
        running = { ...running, [kind]: running[kind] + 1 };
        peak.all = Math.max(peak.all, running.GET + running.POST);
        peak.writes = Math.max(peak.writes, running.POST);
        const finish = (): void => {
          running = { ...running, [kind]: running[kind] - 1 };
          answerData(response, url.endsWith('start') ? upid : []);
        };
        if (holding) held.push(finish);
        else setImmediate(finish);
      };
      const writes = Array.from({ length: 7 }, (_, index) => api().start('pve1', 100 + index));
      await eventually(() => running.POST === 4);
      const reads = Array.from({ length: 6 }, () => api().listVms());
      await eventually(() => running.GET === 4 && held.length === 8);
      holding = false;
      for (const finish of held) finish();
      await Promise.all([...writes, ...reads]);
      assert.deepEqual(peak, { all: 8, writes: 4 });
      assert.equal(peer.requests.length, 13);
      assert.ok(peer.opened() <= 8, `${peer.opened()} connections`);
    }));

  it('a request that finds no free connection within its bound is not sent', () =>
    withRig(
      { requestBoundMs: 150, limits: { connections: 1, writes: 1 }, answer: () => undefined },
      async ({ api, peer }) => {
        // The second is queued first for 150 ms, so it must give up no later than the first times out.
        const [first, second] = await Promise.all([
          failureOf(api().start('pve1', 110)),
          failureOf(api({ writesUntilMs: Date.now() + 160 }).start('pve1', 111)),
        ]);
        assert.equal(first.facts.outcomeUnknown, true);
        assert.equal(asWords(second), 'Transient Timeout provider');
        assert.match(second.message, /nothing was sent/);
        assert.equal(peer.requests.length, 1);
      },
    ));

  it('a connection is used again, and dropped before the server would close it after 5 s idle', () =>
    withRig({}, async ({ api, peer }) => {
      await api().start('pve1', 110);
      await api().start('pve1', 110);
      assert.equal(peer.opened(), 1);
      const idleSince = performance.now();
      await eventually(() => peer.open() === 0, 6_000);
      assert.ok(performance.now() - idleSince < 4_900, 'closed too late');
      await api().start('pve1', 110);
      assert.equal(peer.opened(), 2);
    }));

  it('closing the client waits for requests under way and leaves no connection', () =>
    withRig({}, async ({ another, peer }) => {
      const held: (() => void)[] = [];
      peer.answer = (_request, response) => void held.push(() => answerData(response, upid));
      const http = another({});
      const api: ProxmoxApi = createProxmoxApi('lab', http, anAttempt());
      const call = api.start('pve1', 110);
      await eventually(() => held.length === 1);
      const closing = http.close();
      held[0]?.();
      assert.equal(await call, upid);
      await closing;
      await eventually(() => peer.open() === 0);
    }));
});
