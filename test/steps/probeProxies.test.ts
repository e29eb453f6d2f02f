import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createKubernetesClient } from '../../activities/kubernetes/client.ts';
import type { KubernetesClient } from '../../activities/kubernetes/client.ts';
import { ProxyCache } from '../../activities/kubernetes/proxyCache.ts';
import { readCredentials } from '../../activities/kubernetes/secrets.ts';
import { probeProxies } from '../../activities/probeProxies.ts';
import type { HealthSignal } from '../../workflows/contract/messages.ts';
import { eventually } from '../support/eventually.ts';
import { FakeKubernetes } from '../support/fakeKubernetes.ts';
import { recordingLog } from '../support/recordingLog.ts';
import { TestPage, TestProxy } from '../support/testProxy.ts';

describe('probeProxies', () => {
  let server: FakeKubernetes;
  let client: KubernetesClient;
  let proxy: TestProxy;
  let page: TestPage;
  let port: number;
  let told: HealthSignal[];
  let heartbeats: number;
  let attempt: AbortController;
  let running: Promise<unknown>;
  const { log } = recordingLog();

  beforeEach(async () => {
    server = await new FakeKubernetes().start();
    client = createKubernetesClient(server.kubeConfig(), 2_000);
    [proxy, page, told, heartbeats] = [new TestProxy(), new TestPage(), [], 0];
    attempt = new AbortController();
    port = await proxy.start();
    const step = probeProxies(
      {
        watchProxies: (handlers) => new ProxyCache({ client, log, handlers }),
        readSecret: (namespace, name) => readCredentials(client, namespace, name),
        signal: (_workflowId, health) => {
          told.push(health);
          return Promise.resolve();
        },
        healthCheckUrl: `http://127.0.0.1:${await page.start()}/`,
        clock: { now: Date.now, sleep: (ms, signal) => delay(ms, undefined, { signal }) },
        log,
      },
      {
        call: { signal: attempt.signal, writesUntilMs: Infinity },
        scheduledAtMs: 0,
        heartbeat: () => void heartbeats++,
        log,
      },
      'run-1',
    );
    running = step.catch((error: unknown) => error);
  });
  afterEach(async () => {
    attempt.abort(new Error('over'));
    await running;
    await client.close();
    await proxy.stop();
    await page.stop();
    await server.stop();
  });

  it('sends a request through a Proxy the moment its address is published', async () => {
    server.put('p1', { port, auth: { secretRef: { name: 'squid' } } });
    server.secrets.set('egress/squid', { username: 'u', password: 'p' });
    proxy.credentials = 'u:p';
    await eventually(() => heartbeats > 0);
    assert.equal(told.length, 0);
    server.setStatus('p1', { phase: 'Running', ip: '127.0.0.1' });
    await eventually(() => assert.equal(told[0]?.healthy, true));
    assert.equal(proxy.seen.length, 1);
  });

  it('goes on with the credentials of a Secret that was changed together with its proxy', async () => {
    const healthCheck = { intervalSeconds: 1, timeoutSeconds: 1, failureThreshold: 1 };
    server.secrets.set('egress/squid', { username: 'u', password: 'old' });
    proxy.credentials = 'u:old';
    server.put('p1', { port, auth: { secretRef: { name: 'squid' } }, healthCheck });
    server.setStatus('p1', { phase: 'Running', ip: '127.0.0.1' });
    await eventually(() => assert.equal(told[0]?.healthy, true));
    server.setStatus('p1', { phase: 'Ready', ip: '127.0.0.1', healthy: true });
    server.secrets.set('egress/squid', { username: 'u', password: 'new' });
    proxy.credentials = 'u:new';
    const seen = proxy.seen.length;
    // The refused one, the one right after it, and another in its turn.
    await eventually(() => proxy.seen.length >= seen + 3);
    assert.equal(told.length, 1);
  });

  it('sees a proxy come up that refused at first', async () => {
    await proxy.stop();
    server.put('p1', { port });
    server.setStatus('p1', { phase: 'Running', ip: '127.0.0.1' });
    await eventually(() => server.openWatches() === 1);
    await proxy.start(port);
    await eventually(() => assert.equal(told.at(-1)?.healthy, true), 10_000);
  });

  it('ends with the reason of its attempt, the watch closed', async () => {
    await eventually(() => server.openWatches() === 1);
    attempt.abort(new Error('worker shutdown'));
    assert.match(String(await running), /worker shutdown/);
    await eventually(() => server.openWatches() === 0);
  });
});
