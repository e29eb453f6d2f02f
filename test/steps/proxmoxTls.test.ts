/** TLS, CA and token of the Proxmox client, against real servers. */
import assert from 'node:assert/strict';
import { rmSync, utimesSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { createProxmoxApi } from '../../activities/proxmox/client.ts';
import type { ConnectionSettings, HttpLimits } from '../../activities/proxmox/http.ts';
import type { ProxmoxApi } from '../../activities/proxmox/api.ts';
import { eventually } from '../support/eventually.ts';
import { answerData, startHttpsPeer } from '../support/httpsPeer.ts';
import {
  anAttempt,
  asWords,
  failureOf,
  startRig,
  tokenLine,
  upid,
} from '../support/proxmoxClient.ts';
import type { Rig } from '../support/proxmoxClient.ts';
import { makeCa } from '../support/tls.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.close());

function client(
  settings: Partial<ConnectionSettings>,
  limits: Partial<HttpLimits> = {},
): ProxmoxApi {
  return createProxmoxApi('lab', rig.another(settings, limits), anAttempt());
}

/** A server on a free port that treats every connection as told. */
async function listen(onConnection: (socket: net.Socket) => void): Promise<net.Server> {
  const server = net.createServer(onConnection);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return server;
}

function portOf(server: net.Server): number {
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  return address.port;
}

/** A listener that accepts nothing any more: its thread sleeps and its queue is full, so the kernel drops SYNs. */
async function fullListener(): Promise<{ port: number; stop: () => Promise<unknown> }> {
  const worker = new Worker(
    `const { parentPort } = require('node:worker_threads');
     const server = require('node:net').createServer();
     server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
       parentPort.postMessage(server.address().port);
       setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
     });`,
    { eval: true },
  );
  const port = await new Promise<number>((resolve, reject) => {
    worker.once('message', resolve).once('error', reject);
  });
  const fillers = Array.from({ length: 4 }, () => {
    const socket = net.connect(port, '127.0.0.1');
    return socket.on('error', () => undefined);
  });
  await eventually(() => fillers.filter((socket) => !socket.connecting).length >= 2);
  const stop = (): Promise<unknown> => {
    for (const socket of fillers) socket.destroy();
    return worker.terminate();
  };
  return { port, stop };
}

describe('certificates', () => {
  it('a certificate of the configured CA is accepted by address and by name', async () => {
    assert.equal(await client({}).start('pve1', 110), upid);
    const byName = client({ url: `https://localhost:${rig.peer.port}` });
    assert.equal(await byName.start('pve1', 110), upid);
  });

  it('another CA, or none, is Permanent CertificateInvalid and says what caFile must hold', async () => {
    const other = await makeCa('Another CA');
    for (const caFile of [other.caFile, null]) {
      const error = await failureOf(client({ caFile }).start('pve1', 110));
      assert.equal(asWords(error), 'Permanent CertificateInvalid provider');
      assert.match(error.message, new RegExp(`127\\.0\\.0\\.1:${rig.peer.port}`));
      assert.match(error.message, /caFile must hold the CA/);
      assert.equal(error.facts.outcomeUnknown, undefined);
    }
    rmSync(other.dir, { recursive: true });
  });

  it('a host that the certificate does not name is refused, naming host and names', async () => {
    const peer = await startHttpsPeer(
      await rig.ca.issue(['pve1', '192.0.2.8']),
      (_request, response) => answerData(response, upid),
    );
    for (const host of ['127.0.0.1', 'localhost']) {
      const error = await failureOf(client({ url: `https://${host}:${peer.port}` }).listVms());
      assert.equal(asWords(error), 'Permanent CertificateInvalid provider');
      assert.match(error.message, new RegExp(`certificate of ${host}:${peer.port}`));
      assert.match(error.message, /192\.0\.2\.8|DNS:pve1/);
      assert.match(error.facts.remedy ?? '', /url/);
    }
    assert.equal(peer.requests.length, 0);
    await peer.close();
  });

  it('an expired certificate is Permanent and says to renew it', async () => {
    const peer = await startHttpsPeer(
      await rig.ca.issue(['127.0.0.1'], { expired: true }),
      (_request, response) => answerData(response, upid),
    );
    const error = await failureOf(client({ url: peer.url }).listVms());
    assert.equal(asWords(error), 'Permanent CertificateInvalid provider');
    assert.match(error.message, /CERT_HAS_EXPIRED.*renew/);
    await peer.close();
  });

  it('insecureSkipTLSVerify accepts any certificate and reads no CA file', async () => {
    const settings = { insecureSkipTLSVerify: true, caFile: join(rig.ca.dir, 'missing.pem') };
    assert.equal(await client(settings).start('pve1', 110), upid);
  });

  it('HTTP/1.1 is spoken with a server that also offers HTTP/2', async () => {
    const other = await startRig({ alpn: ['h2', 'http/1.1'] });
    assert.equal(await other.api().start('pve1', 110), upid);
    assert.equal(other.peer.requests.length, 1);
    await other.close();
  });
});

describe('connections that do not come to be', () => {
  it('a port that speaks plain HTTP is Unreachable and named as such', async () => {
    const server = await listen((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    const url = `https://127.0.0.1:${portOf(server)}`;
    const error = await failureOf(client({ url }).start('pve1', 110));
    assert.equal(asWords(error), 'Transient Unreachable provider');
    assert.match(error.message, /does not speak TLS/);
    server.close();
  });

  it('a peer that accepts and stays silent ends at the bound of the TLS handshake', async () => {
    const held: net.Socket[] = [];
    const server = await listen((socket) => void held.push(socket));
    const url = `https://127.0.0.1:${portOf(server)}`;
    const error = await failureOf(client({ url }, { tlsTimeoutMs: 100 }).start('pve1', 110));
    assert.equal(asWords(error), 'Transient Unreachable provider');
    assert.match(error.message, /TLS handshake to 127\.0\.0\.1:\d+ failed: .*within 0\.1 s/);
    assert.equal(error.facts.outcomeUnknown, undefined);
    for (const socket of held) socket.destroy();
    server.close();
  });

  it('a peer that drops connection requests ends at the bound of the TCP connect', async () => {
    const { port, stop } = await fullListener();
    const url = `https://127.0.0.1:${port}`;
    const error = await failureOf(client({ url }, { tcpTimeoutMs: 100 }).start('pve1', 110));
    assert.equal(asWords(error), 'Transient Unreachable provider');
    assert.match(error.message, /TCP connect to 127\.0\.0\.1:\d+ failed: .*within 0\.1 s/);
    assert.equal(error.facts.outcomeUnknown, undefined);
    await stop();
  });

  it('a refused connection is Unreachable and no write can have happened', async () => {
    const server = await listen(() => undefined);
    const url = `https://127.0.0.1:${portOf(server)}`;
    server.close();
    const error = await failureOf(client({ url }).start('pve1', 110));
    assert.equal(asWords(error), 'Transient Unreachable provider');
    assert.match(error.message, /TCP connect .*ECONNREFUSED/);
    assert.equal(error.facts.outcomeUnknown, undefined);
  });

  it('a host name that does not resolve is Unreachable', async () => {
    const error = await failureOf(client({ url: 'https://pve.invalid:8006' }).listVms());
    assert.equal(asWords(error), 'Transient Unreachable provider');
    assert.match(error.message, /pve\.invalid:8006/);
  });
});

describe('CA file', () => {
  it('a missing file is Transient and counts as soon as it is there', async () => {
    const caFile = join(rig.ca.dir, 'late.pem');
    const api = client({ caFile });
    const error = await failureOf(api.listVms());
    assert.equal(asWords(error), 'Transient CredentialsUnavailable provider');
    assert.match(error.message, /late\.pem/);
    writeFileSync(caFile, rig.ca.caPem);
    assert.equal(await api.start('pve1', 110), upid);
  });

  it('a file without a certificate, or with a broken one, is Permanent', async () => {
    const broken = rig.ca.caPem.replace(/\n[A-Za-z0-9+/]{10}/, '\nAAAAAAAAAA');
    for (const content of ['', 'not PEM', broken]) {
      const caFile = join(rig.ca.dir, 'broken.pem');
      writeFileSync(caFile, content);
      const error = await failureOf(client({ caFile }).listVms());
      assert.equal(asWords(error), 'Permanent CertificateInvalid provider');
      assert.match(error.message, /broken\.pem of provider lab/);
      assert.ok(content === '' || !error.message.includes(content));
    }
  });

  it('a changed file makes a new connection while requests under way end on the old one', async () => {
    const caFile = join(rig.ca.dir, 'rotated.pem');
    writeFileSync(caFile, rig.ca.caPem);
    const http = rig.another({ caFile });
    const api = createProxmoxApi('lab', http, anAttempt());
    const waiting: (() => void)[] = [];
    const answered = rig.peer.answer;
    rig.peer.answer = (request, response) => void waiting.push(() => answered(request, response));
    const slow = api.start('pve1', 110);
    await eventually(() => waiting.length === 1);

    const other = await makeCa('Next CA');
    writeFileSync(caFile, other.caPem);
    // Two writes within one tick of the file system's clock must count as two.
    utimesSync(caFile, new Date(), new Date(Date.now() + 5_000));
    const error = await failureOf(api.start('pve1', 110));
    assert.equal(asWords(error), 'Permanent CertificateInvalid provider');

    rig.peer.answer = answered;
    for (const go of waiting) go();
    assert.equal(await slow, upid);
    writeFileSync(caFile, `${other.caPem}${rig.ca.caPem}`);
    assert.equal(await api.start('pve1', 110), upid);
    rmSync(other.dir, { recursive: true });
  });
});

describe('token file', () => {
  it('is read for every request, so that a rotated token counts at once', async () => {
    const tokenFile = join(rig.ca.dir, 'rotating');
    const api = client({ tokenFile });
    writeFileSync(tokenFile, '  a@pve!one=11111111-1111-4111-8111-111111111111 \n');
    await api.start('pve1', 110);
    assert.equal(await api.tokenId(), 'a@pve!one');
    writeFileSync(tokenFile, 'b@pam!two=22222222-2222-4222-8222-222222222222');
    await api.start('pve1', 110);
    const sent = rig.peer.requests.slice(-2).map(({ headers }) => headers.authorization);
    assert.deepEqual(sent, [
      'PVEAPIToken=a@pve!one=11111111-1111-4111-8111-111111111111',
      'PVEAPIToken=b@pam!two=22222222-2222-4222-8222-222222222222',
    ]);
  });

  it('a user name with characters that end or alter the header is percent-encoded', async () => {
    const tokenFile = join(rig.ca.dir, 'odd');
    writeFileSync(tokenFile, 'a;b%20ü@pve!one=11111111-1111-4111-8111-111111111111');
    await client({ tokenFile }).start('pve1', 110);
    assert.equal(
      rig.peer.requests.at(-1)?.headers.authorization,
      'PVEAPIToken=a%3Bb%2520%C3%BC@pve!one=11111111-1111-4111-8111-111111111111',
    );
  });

  it('a missing file is Transient CredentialsUnavailable and nothing is sent', async () => {
    const sent = rig.peer.requests.length;
    const error = await failureOf(client({ tokenFile: join(rig.ca.dir, 'none') }).listVms());
    assert.equal(asWords(error), 'Transient CredentialsUnavailable provider');
    assert.equal(rig.peer.requests.length, sent);
  });

  it('a malformed file is Permanent TokenMalformed and is never quoted', async () => {
    const secret = '00000000-0000-4000-8000-00000000cafe';
    const lines = [
      '',
      secret,
      `operator@pve=${secret}`,
      `operator!x=${secret}`,
      `${tokenLine}\n${tokenLine}`,
      `PVEAPIToken=${tokenLine} `,
      'proxy-operator@pve!operator=',
    ];
    const tokenFile = join(rig.ca.dir, 'malformed');
    for (const line of lines) {
      writeFileSync(tokenFile, line);
      const error = await failureOf(client({ tokenFile }).listVms());
      assert.equal(asWords(error), 'Permanent TokenMalformed provider', line);
      assert.ok(!error.message.includes(secret), error.message);
    }
  });
});
