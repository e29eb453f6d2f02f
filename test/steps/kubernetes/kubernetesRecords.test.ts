import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { finalizer } from '../../../api/proxy.ts';
import { createKubernetesClient } from '../../../activities/kubernetes/client.ts';
import type { KubernetesClient } from '../../../activities/kubernetes/client.ts';
import { readCredentials } from '../../../activities/kubernetes/secrets.ts';
import { KubernetesProxyRecords } from '../../../activities/kubernetes/kubernetesRecords.ts';
import { ProviderError } from '../../../activities/providerError.ts';
import type { ProxyRef } from '../../../workflows/contract/proxy.ts';
import { FakeKubernetes } from '../../support/fakeKubernetes.ts';
import { recordingLog } from '../../support/recordingLog.ts';
import { aCondition, aStatus } from '../../support/aStatus.ts';

describe('KubernetesProxyRecords', () => {
  let server: FakeKubernetes;
  let client: KubernetesClient;
  let records: KubernetesProxyRecords;
  const { log, lines } = recordingLog();

  function proxy(name = 'p1', finalizers: string[] = []): ProxyRef {
    const { uid } = server.put(name, {}, { finalizers }).metadata;
    return { namespace: 'egress', name, uid };
  }
  const patches = () => server.requests.filter(({ method }) => method === 'PATCH').length;

  beforeEach(async () => {
    server = await new FakeKubernetes().start();
    client = createKubernetesClient(server.kubeConfig(), 2_000);
    records = new KubernetesProxyRecords(client, log);
    lines.length = 0;
  });
  afterEach(async () => {
    await client.close();
    await server.stop();
  });

  it('reads an object with the defaults of its kind', async () => {
    const read = await records.get(proxy());
    assert.equal(read?.spec.port, 3128);
  });

  it('takes an object of the same name and another UID for gone', async () => {
    const ref = { ...proxy(), uid: 'another' };
    assert.equal(await records.get(ref), null);
    assert.equal(await records.publishStatus(ref, aStatus()), false);
    assert.equal(await records.removeFinalizer(ref), false);
    await assert.rejects(records.addFinalizer(ref), {
      facts: { reason: 'ObjectGone', scope: 'proxy' },
    });
    assert.equal(patches(), 0);
  });

  it('does not take a kind that is not served for an object that is gone', async () => {
    const ref = proxy();
    server.refusals.set('/proxies/p1', 404);
    await assert.rejects(records.get(ref), /custom resource definitions/);
  });

  it('tells once how long a Proxy took to be Ready for the first time', async () => {
    const told: number[] = [];
    const now = new Date('2026-11-29T12:01:30Z');
    const tell = (seconds: number): number => told.push(seconds);
    records = new KubernetesProxyRecords(client, log, () => now, tell);
    const metadata = { creationTimestamp: '2026-11-29T12:00:00Z' };
    const { uid } = server.put('p1', {}, metadata).metadata;
    const ref = { namespace: 'egress', name: 'p1', uid };
    await records.publishStatus(ref, aStatus({ everReady: false }));
    await records.publishStatus(ref, aStatus({ everReady: true }));
    await records.publishStatus(ref, aStatus({ everReady: true, phase: 'Running' }));
    assert.deepEqual(told, [90]);
  });

  it('adds its finalizer beside others, once', async () => {
    const ref = proxy('p1', ['example.org/other']);
    await records.addFinalizer(ref);
    await records.addFinalizer(ref);
    assert.deepEqual(server.object('p1')?.metadata.finalizers, ['example.org/other', finalizer]);
    assert.equal(patches(), 1);
  });

  it('removes its finalizer and leaves the others', async () => {
    const ref = proxy('p1', [finalizer, 'example.org/other']);
    server.remove('p1');
    assert.equal(await records.removeFinalizer(ref), true);
    assert.deepEqual(server.object('p1')?.metadata.finalizers, ['example.org/other']);
  });

  it('keeps its finalizer on an object that is not being deleted', async () => {
    const ref = proxy('p1', [finalizer]);
    const failure = await rejection(records.removeFinalizer(ref));
    assert.equal(failure.errorClass, 'Transient');
    assert.equal(failure.facts.reason, 'StillWanted');
    assert.deepEqual(server.object('p1')?.metadata.finalizers, [finalizer]);
    assert.equal(patches(), 0);
  });

  it('lets an object under deletion go', async () => {
    const ref = proxy('p1', [finalizer]);
    server.remove('p1');
    assert.equal(await records.removeFinalizer(ref), true);
    assert.equal(server.object('p1'), undefined);
    assert.equal(await records.removeFinalizer(ref), false);
  });

  it('claims nothing that is under deletion already', async () => {
    const ref = proxy('p1', ['example.org/other']);
    server.remove('p1');
    await records.addFinalizer(ref);
    assert.deepEqual(server.object('p1')?.metadata.finalizers, ['example.org/other']);
  });

  it('writes a status and sends nothing when it is there already', async () => {
    const ref = proxy();
    const status = aStatus({ conditions: [aCondition()] });
    assert.equal(await records.publishStatus(ref, status), true);
    assert.equal(server.object('p1')?.status?.['phase'], 'Provisioning');
    assert.equal(await records.publishStatus(ref, status), true);
    assert.equal(patches(), 1);
  });

  it('reads again and writes when somebody else wrote in between', async () => {
    const ref = proxy();
    server.conflicts = 2;
    assert.equal(await records.publishStatus(ref, aStatus({ phase: 'Running' })), true);
    assert.equal(server.object('p1')?.status?.['phase'], 'Running');
  });

  it('gives up on endless conflicts as Transient', async () => {
    const ref = proxy();
    server.conflicts = 100;
    const failure = await rejection(records.publishStatus(ref, aStatus()));
    assert.equal(failure.errorClass, 'Transient');
    assert.equal(failure.facts.reason, 'KubernetesUnavailable');
  });

  it('names object, verb, answer and the missing RBAC rule', async () => {
    const ref = proxy();
    server.refusals.set('/status', 403);
    const { message, facts } = await rejection(records.publishStatus(ref, aStatus()));
    assert.match(
      message,
      /did not patch the status of Proxy egress\/p1: HTTP 403: refused by the test/,
    );
    assert.match(message, /«proxies\/status: patch»/);
    assert.equal(facts.httpStatus, 403);
  });

  it('is Transient when nobody answers', async () => {
    const ref = proxy();
    await server.stop();
    const failure = await rejection(records.get(ref));
    assert.equal(failure.errorClass, 'Transient');
    assert.match(failure.message, /Proxy egress\/p1.*ECONNREFUSED|other side closed/);
  });

  it('counts an Event that repeats instead of recording it again', async () => {
    const ref = proxy();
    const event = {
      type: 'Normal',
      reason: 'Cloned',
      action: 'cloneTemplate',
      message: 'm',
    } as const;
    for (let time = 0; time < 3; time++) await records.recordEvent(ref, event);
    await records.recordEvent(ref, { ...event, message: 'other' });
    const events = [...server.events.values()];
    assert.equal(events.length, 2);
    assert.deepEqual(
      events.map(({ series }) => Object(series)['count']),
      [3, undefined],
    );
    assert.equal(events[0]?.['reportingController'], 'egress-proxies-operator');
  });

  it('fails nothing when an Event cannot be recorded', async () => {
    const ref = proxy();
    server.refusals.set('/events', 403);
    await records.recordEvent(ref, { type: 'Warning', reason: 'R', action: 'a', message: 'm' });
    assert.ok(lines.some(({ msg }) => msg === 'event not recorded'));
  });

  it('logs an Event that a namespace under deletion does not take, and asks for no privilege', async () => {
    const ref = proxy();
    server.terminating.add('egress');
    await records.recordEvent(ref, { type: 'Warning', reason: 'R', action: 'a', message: 'VM 7' });
    const [line] = lines;
    assert.equal(line?.msg, 'event not recorded, its namespace is being deleted');
    assert.deepEqual([line['level'], line['proxy'], line['note']], [30, 'egress/p1', 'VM 7']);
    assert.equal(lines.length, 1);
  });

  it('reads a key of a Secret as bytes and names Secret and key when it is not there', async () => {
    server.secrets.set('egress/squid', { userData: '#cloud-config\n' });
    const bytes = await records.secretKey('egress', 'squid', 'userData');
    assert.equal(Buffer.from(bytes).toString(), '#cloud-config\n');
    const noKey = await rejection(records.secretKey('egress', 'squid', 'other'));
    assert.equal(noKey.facts.reason, 'CloudInitUnavailable');
    assert.match(noKey.message, /Secret egress\/squid has no key other/);
    const noSecret = await rejection(records.secretKey('egress', 'absent', 'userData'));
    assert.match(noSecret.message, /Secret egress\/absent does not exist/);
  });

  it('reads user name and password in one request, so that no change of both comes between them', async () => {
    server.secrets.set('egress/squid', { password: 'p', username: 'u' });
    const credentials = await readCredentials(client, 'egress', 'squid');
    assert.deepEqual(credentials, { username: 'u', password: 'p' });
    const reads = server.requests.filter(({ path }) => path.endsWith('/secrets/squid'));
    assert.equal(reads.length, 1);
    const noSecret = await rejection(readCredentials(client, 'egress', 'absent'));
    assert.match(noSecret.message, /Create it with the key username and the key password/);
  });
});

async function rejection(promise: Promise<unknown>): Promise<ProviderError> {
  const [result] = await Promise.allSettled([promise]);
  if (result.status === 'rejected' && result.reason instanceof ProviderError) return result.reason;
  throw new Error('a ProviderError was expected');
}
