import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { finalizer, retryAnnotation } from '../../api/proxy.ts';
import { createKubernetesClient } from '../../activities/kubernetes/client.ts';
import type { KubernetesClient } from '../../activities/kubernetes/client.ts';
import { startController } from '../../controller/controller.ts';
import type { Controller } from '../../controller/controller.ts';
import { eventually } from '../support/eventually.ts';
import { FakeDesk } from '../support/fakeDesk.ts';
import { FakeKubernetes } from '../support/fakeKubernetes.ts';
import { recordingLog } from '../support/recordingLog.ts';

const spec = { provider: 'home', placement: { machineType: 'm', image: 'i' }, cloudInit: 'c' };

describe('the controller', () => {
  let server: FakeKubernetes;
  let client: KubernetesClient;
  let desk: FakeDesk;
  let controller: Controller | undefined;
  const { log, lines } = recordingLog();

  async function start(fullListMs = 60_000): Promise<Controller> {
    controller = await startController({
      kubernetes: client,
      desk,
      log,
      host: '127.0.0.1',
      ports: { metrics: 0, health: 0, discovery: 0 },
      pace: { fullListMs, overdueMs: 0, steadyMs: 0, retryFirstMs: 10, retryMaxMs: 50 },
    });
    return controller;
  }
  const get = async (port: keyof Controller['ports'], path: string): Promise<Response> =>
    await fetch(`http://127.0.0.1:${controller?.ports[port]}${path}`);
  const uidOf = (name: string): string => server.object(name)?.metadata.uid ?? '';

  beforeEach(async () => {
    server = await new FakeKubernetes().start();
    client = createKubernetesClient(server.kubeConfig(), 2_000);
    desk = new FakeDesk();
    lines.length = 0;
  });
  afterEach(async () => {
    await controller?.stop();
    controller = undefined;
    await client.close();
    await server.stop();
  });

  it('starts one run per Proxy and tells it of a change, of a retry and of the deletion, once each', async () => {
    await start();
    server.put('p1', spec, { finalizers: [finalizer] });
    const uid = uidOf('p1');
    await eventually(() => desk.runs.has(uid));
    server.setStatus('p1', { phase: 'Ready', observedGeneration: 1 });
    server.put('p1', { ...spec, port: 8080 });
    await eventually(() =>
      assert.deepEqual(desk.runs.get(uid), [{ generation: 2, deleting: false }]),
    );
    server.setStatus('p1', { phase: 'Ready', observedGeneration: 2 });
    server.put(
      'p1',
      { ...spec, port: 8080 },
      { generation: 2, annotations: { [retryAnnotation]: 'x' } },
    );
    await eventually(() => desk.runs.get(uid)?.length === 2);
    server.remove('p1');
    await eventually(() =>
      assert.deepEqual(desk.runs.get(uid)?.at(-1), { generation: 2, deleting: true }),
    );
    server.setStatus('p1', { phase: 'Deleting', observedGeneration: 2 });
    server.put('p2', spec);
    await eventually(() => desk.runs.has(uidOf('p2')));
    assert.equal(desk.runs.get(uid)?.length, 3);
    assert.equal(desk.starts, 2);
  });

  it('finds what happened while it was away: new objects and pending deletions (21 d)', async () => {
    server.put('p5', spec);
    server.put('p6', spec, { finalizers: [finalizer] });
    server.remove('p6');
    await start();
    await eventually(() => {
      assert.deepEqual(desk.runs.get(uidOf('p5')), []);
      assert.deepEqual(desk.runs.get(uidOf('p6')), [{ generation: 1, deleting: true }]);
    });
  });

  it('starts a run again that somebody terminated, at the next full list', async () => {
    server.put('p1', spec);
    server.setStatus('p1', { phase: 'Ready', observedGeneration: 1 });
    await start(100);
    await eventually(() => desk.runs.size === 1);
    desk.runs.clear();
    await eventually(() => desk.runs.size === 1);
  });

  it('leaves an accepted Proxy with a run alone when it starts', async () => {
    server.put('p1', spec);
    server.setStatus('p1', { phase: 'Ready', observedGeneration: 1 });
    desk.runs.set(uidOf('p1'), []);
    await start();
    await eventually(() => lines.some(({ msg }) => msg === 'proxy workflows resynced'));
    assert.equal(desk.calls, 0);
  });

  it('tells a generation again that means something else since etcd was restored', async () => {
    await start(100);
    server.put('p1', spec, { generation: 5 });
    const uid = uidOf('p1');
    const tellings = (): unknown[] =>
      (desk.runs.get(uid) ?? []).map(({ generation }) => generation);
    await eventually(() => assert.deepEqual(tellings(), [5]));
    server.setStatus('p1', { phase: 'Ready', observedGeneration: 4 });
    server.put('p1', spec, { generation: 4 });
    server.put('p1', { ...spec, port: 8080 }, { generation: 5 });
    await eventually(() => assert.deepEqual(tellings(), [5, 5]));
  });

  it('tells a run that its object is gone, and starts none for it', async () => {
    await start();
    server.put('p1', spec);
    const uid = uidOf('p1');
    await eventually(() => desk.runs.has(uid));
    server.remove('p1');
    await eventually(() =>
      assert.deepEqual(desk.runs.get(uid), [{ generation: 1, deleting: true }]),
    );
    assert.equal(desk.starts, 1);
  });

  it('serves readiness, metrics and discovery', async () => {
    server.put('p1', spec);
    server.setStatus('p1', {
      phase: 'Ready',
      healthy: true,
      ip: '10.0.0.7',
      observedGeneration: 1,
    });
    await start();
    await eventually(async () => (await get('health', '/readyz')).status === 200);
    assert.ok(lines.some(({ msg }) => msg === 'ready'));
    assert.equal((await get('health', '/healthz')).status, 200);
    const metrics = await (await get('metrics', '/metrics')).text();
    assert.match(metrics, /^proxy_operator_temporal_up 1$/m);
    assert.match(metrics, /^proxy_operator_watch_age_seconds\{kind="proxies"\} /m);
    assert.match(metrics, /^proxy_operator_proxies\{provider="home",phase="Ready"\} 1$/m);
    const discovered = await (await get('discovery', '/v1/proxies')).text();
    assert.match(discovered, /"address":"10\.0\.0\.7:3128"/);
  });

  it('is not ready and serves 503 before Kubernetes was read', async () => {
    server.refusals.set('/proxies', 500);
    await start();
    assert.equal((await get('health', '/readyz')).status, 503);
    assert.equal((await get('discovery', '/v1/proxies')).status, 503);
  });

  it('says which port is occupied and by which flag to move', async () => {
    await start();
    const taken = controller?.ports.discovery ?? 0;
    const second = startController({
      kubernetes: client,
      desk,
      log,
      host: '127.0.0.1',
      ports: { metrics: 0, health: 0, discovery: taken },
    });
    await assert.rejects(second, new RegExp(`discovery port ${taken}.*--discovery-port`));
  });
});
