import assert from 'node:assert/strict';
import { createServer as createTlsServer } from 'node:https';
import { createServer, type Server } from 'node:net';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { probe } from '../../activities/probe/probe.ts';
import type { ProbeRequest } from '../../activities/probe/probe.ts';
import { certificatesInMemory, newCa } from '../simulator/certificates.ts';
import { TestPage, TestProxy } from '../support/testProxy.ts';

const never = new AbortController().signal;

describe('a probe', () => {
  let proxy: TestProxy;
  let page: TestPage;
  let request: ProbeRequest;

  beforeEach(async () => {
    [proxy, page] = [new TestProxy(), new TestPage()];
    const port = await proxy.start();
    request = {
      ip: '127.0.0.1',
      port,
      url: `http://127.0.0.1:${await page.start()}/generate_204?x=1`,
      timeoutMs: 2_000,
      expectedStatuses: null,
      credentials: null,
    };
  });
  afterEach(async () => {
    await proxy.stop();
    await page.stop();
  });

  it('goes through the proxy, without a tunnel for http', async () => {
    const outcome = await probe(request, never);
    assert.equal(outcome.reason, 'ProbeSucceeded');
    assert.equal(outcome.healthy, true);
    assert.deepEqual(proxy.seen, [`GET ${request.url}`]);
  });

  it('says that a URL or an address cannot be, which Kubernetes takes', async () => {
    for (const url of ['http://10.0.0.300/', 'http://127.0.0.1:99999/']) {
      const outcome = await probe({ ...request, url }, never);
      assert.deepEqual([outcome.healthy, outcome.reason], [false, 'ProbeFailed']);
      assert.match(outcome.message, /correct spec\.healthCheck\.url/);
    }
    const nowhere = await probe({ ...request, ip: '10.0.0.300' }, never);
    assert.match(nowhere.message, /correct spec\.address/);
  });

  it('takes a redirect for an answer and an error page for none', async () => {
    page.status = 302;
    assert.equal((await probe(request, never)).healthy, true);
    page.status = 404;
    const outcome = await probe(request, never);
    assert.equal(outcome.reason, 'UnexpectedStatus');
    assert.equal(outcome.pastProxy, true);
    assert.match(outcome.message, /answered 404, expected 2xx or 3xx/);
  });

  it('keeps to the expected statuses where they are given', async () => {
    page.status = 403;
    assert.equal((await probe({ ...request, expectedStatuses: [403] }, never)).healthy, true);
    page.status = 200;
    assert.equal((await probe({ ...request, expectedStatuses: [403] }, never)).healthy, false);
  });

  it('sends the credentials, and says so when they are missing or wrong', async () => {
    proxy.credentials = 'user:pass:word';
    const missing = await probe(request, never);
    assert.equal(missing.reason, 'ProxyAuthenticationRequired');
    assert.equal(missing.pastProxy, false);
    assert.match(missing.message, /set spec\.auth\.secretRef/);
    const wrong = { username: 'user', password: 'CANARY' };
    const refused = await probe({ ...request, credentials: wrong }, never);
    assert.match(refused.message, /check username and password/);
    assert.ok(!JSON.stringify(refused).includes('CANARY'));
    const right = { username: 'user', password: 'pass:word' };
    assert.equal((await probe({ ...request, credentials: right }, never)).healthy, true);
  });

  it('tells a proxy that refuses from one that resets and one that is silent', async () => {
    proxy.behaviour = 'reset';
    assert.equal((await probe(request, never)).reason, 'ConnectionReset');
    proxy.behaviour = 'silent';
    const silent = await probe({ ...request, timeoutMs: 100 }, never);
    assert.equal(silent.reason, 'ProbeTimeout');
    assert.equal(silent.pastProxy, true);
    await proxy.stop();
    const refused = await probe(request, never);
    assert.equal(refused.reason, 'ConnectionRefused');
    assert.equal(refused.pastProxy, false);
  });

  it('blames what is behind the proxy when the proxy says so', async () => {
    await page.stop();
    const outcome = await probe(request, never);
    assert.equal(outcome.reason, 'UnexpectedStatus');
    assert.equal(outcome.pastProxy, true);
    assert.match(outcome.message, /503/);
  });

  it('is no HTTP proxy what answers with something else', async (t) => {
    const other = createServer((socket) => socket.resume().end('SSH-2.0-OpenSSH\r\n'));
    t.after(() => other.close());
    const port = await listening(other);
    const outcome = await probe({ ...request, port }, never);
    assert.equal(outcome.reason, 'ProbeFailed');
    assert.match(outcome.message, /what listens at .* does not speak HTTP/);
  });

  it('reaches an External proxy by its host name, and says when the name is unknown', async () => {
    const outcome = await probe({ ...request, ip: 'localhost' }, never);
    assert.equal(outcome.reason, 'ProbeSucceeded', outcome.message);
    const unknown = await probe({ ...request, ip: 'no-such-host.invalid' }, never);
    assert.equal(unknown.healthy, false);
    assert.equal(unknown.pastProxy, false);
    assert.match(unknown.message, /no-such-host\.invalid/);
  });

  it('ends with the reason of its signal when the attempt is over', async () => {
    proxy.behaviour = 'silent';
    const attempt = new AbortController();
    const running = probe(request, attempt.signal);
    attempt.abort(new Error('worker shutdown'));
    await assert.rejects(running, /worker shutdown/);
  });

  describe('of an https URL', () => {
    const trusted = getCACertificates();
    let secure: ReturnType<typeof createTlsServer>;
    let ca: string;
    let url: string;

    before(async () => {
      const made = await certificatesInMemory();
      ca = made.ca;
      secure = createTlsServer(made, (_request, response) => {
        response.writeHead(204).end();
      });
      await new Promise<void>((resolve) => {
        secure.listen(0, '127.0.0.1', resolve);
      });
      const address = secure.address();
      url = `https://127.0.0.1:${address !== null && typeof address === 'object' ? address.port : 0}/`;
    });
    after(async () => {
      setDefaultCACertificates(trusted);
      secure.closeAllConnections();
      await new Promise((resolve) => secure.close(resolve));
    });

    it('tunnels, and reports a certificate that nobody vouches for', async () => {
      setDefaultCACertificates(trusted);
      const outcome = await probe({ ...request, url }, never);
      assert.equal(outcome.reason, 'TlsFailed');
      assert.equal(outcome.pastProxy, true);
      assert.deepEqual(proxy.seen, [`CONNECT ${new URL(url).host}`]);
    });

    it('succeeds through the tunnel when the certificate is trusted', async () => {
      setDefaultCACertificates([...trusted, ca]);
      const outcome = await probe({ ...request, url }, never);
      assert.equal(outcome.reason, 'ProbeSucceeded', outcome.message);
    });

    it('knows a tunnel that is refused for want of credentials or of a target', async () => {
      proxy.credentials = 'a:b';
      const refused = await probe({ ...request, url }, never);
      assert.equal(refused.reason, 'ProxyAuthenticationRequired');
      proxy.credentials = null;
      const closed = await probe({ ...request, url: 'https://127.0.0.1:1/' }, never);
      assert.equal(closed.reason, 'UnexpectedStatus');
      assert.equal(closed.pastProxy, true);
    });

    it('blames the target for a tunnel that is opened and cut', async (t) => {
      const cutter = createServer((socket) => {
        socket.on('error', () => undefined).once('data', () => socket.end());
      });
      t.after(() => cutter.close());
      const port = await listening(cutter);
      const outcome = await probe({ ...request, url: `https://127.0.0.1:${port}/` }, never);
      assert.equal(outcome.reason, 'ConnectionReset');
      assert.equal(outcome.pastProxy, true);
      assert.match(outcome.message, /the tunnel to 127\.0\.0\.1:\d+ through .* was cut/);
    });

    it('says in a few words that the target speaks no TLS', async () => {
      const outcome = await probe(
        { ...request, url: request.url.replace('http:', 'https:') },
        never,
      );
      assert.equal(outcome.reason, 'TlsFailed');
      assert.match(outcome.message, /failed: [a-z ]+$/);
    });

    it('gives no advice how to start the operator to who reads of a certificate', async (t) => {
      setDefaultCACertificates(trusted);
      const unknown = await (await newCa('unknown', 1)).issue(['127.0.0.1']);
      const server = createTlsServer(unknown, (_request, response) => void response.end());
      t.after(() => server.close());
      const port = await listening(server);
      const outcome = await probe({ ...request, url: `https://127.0.0.1:${port}/` }, never);
      assert.match(outcome.message, /failed: unable to verify the first certificate$/);
    });

    it('says that a port that speaks TLS only is no plain proxy', async () => {
      const port = Number(new URL(url).port);
      const outcome = await probe({ ...request, port }, never);
      assert.equal(outcome.healthy, false);
      assert.equal(outcome.pastProxy, false);
    });

    it('times out in a tunnel that nobody opens', async () => {
      proxy.behaviour = 'silent';
      const outcome = await probe({ ...request, url, timeoutMs: 100 }, never);
      assert.equal(outcome.reason, 'ProbeTimeout');
    });
  });
});

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  return address !== null && typeof address === 'object' ? address.port : 0;
}
