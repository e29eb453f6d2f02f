import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Client, Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { createTemporalDesk } from '../../controller/temporalDesk.ts';
import { findTool } from '../../deploy/dev/tools.ts';
import { grpcCodeOf } from '../../worker/runtime/grpc.ts';
import { registerSearchAttributes } from '../../worker/runtime/searchAttributes.ts';
import { connectClient } from '../../worker/runtime/temporal.ts';
import { proxyWorkflowId } from '../../workflows/contract/messages.ts';
import { eventually } from '../support/eventually.ts';
import { recordingLog } from '../support/recordingLog.ts';
import { startRelay } from '../support/relay.ts';

/** The gRPC status of a call that ran out of its time. */
const deadlineExceeded = 4;

describe('what the controller asks of a real Temporal', () => {
  const { log, lines } = recordingLog();
  let env: TestWorkflowEnvironment;

  before(async () => {
    const { path } = await findTool('temporal');
    env = await TestWorkflowEnvironment.createLocal({
      server: {
        executable: { type: 'existing-path', path },
        log: { format: 'json', level: 'error' },
      },
    });
  });
  after(async () => await env.teardown());

  const identity = (uid: string) => ({
    ref: { namespace: 'egress', name: 'p1', uid },
    provider: 'home',
  });
  const history = async (uid: string): Promise<number> =>
    (await env.client.workflow.getHandle(proxyWorkflowId(uid)).describe()).historyLength;

  it('registers the search attributes, also a second time, and finds one of another type', async () => {
    const { connection } = env;
    const namespace = env.namespace ?? 'default';
    assert.equal(await registerSearchAttributes(connection, namespace, log), true);
    assert.equal(await registerSearchAttributes(connection, namespace, log), true);
    assert.equal(lines.length, 0);
    await connection.workflowService.registerNamespace({
      namespace: 'spoilt',
      workflowExecutionRetentionPeriod: msToTs('1 day'),
    });
    await eventually(async () => {
      const searchAttributes = { ProxyVmid: 2 };
      await connection.operatorService.addSearchAttributes({
        namespace: 'spoilt',
        searchAttributes,
      });
    }, 20_000);
    assert.equal(await registerSearchAttributes(connection, 'spoilt', log), false);
    assert.match(JSON.stringify(lines.at(-1)), /ProxyVmid has another type/);
  });

  it('ensures a run once and leaves a running one untouched', async () => {
    const desk = createTemporalDesk({ client: env.client, searchAttributes: true });
    await desk.ensure(identity('u1'));
    const events = await history('u1');
    await desk.ensure(identity('u1'));
    assert.equal(await history('u1'), events);
    const described = await env.client.workflow.getHandle(proxyWorkflowId('u1')).describe();
    assert.equal(await described.staticSummary(), 'egress/p1');
    const attributes = described.typedSearchAttributes.getAll();
    assert.deepEqual(Object.fromEntries(attributes.map(({ key, value }) => [key.name, value])), {
      ProxyName: 'egress/p1',
      ProxyPhase: 'Pending',
      ProxyProvider: 'home',
    });
  });

  it('tells a run of news, starting it where there is none', async () => {
    const desk = createTemporalDesk({ client: env.client, searchAttributes: false });
    await desk.tell(identity('u2'), { generation: 2, deleting: false });
    await desk.tell(identity('u2'), { generation: 3, deleting: false });
    const { events } = await env.client.workflow.getHandle(proxyWorkflowId('u2')).fetchHistory();
    const signals = (events ?? []).filter(
      (event) => event.workflowExecutionSignaledEventAttributes,
    );
    assert.equal(signals.length, 2);
  });

  it('starts nothing for an object that is gone', async () => {
    const desk = createTemporalDesk({ client: env.client, searchAttributes: false });
    const { ref } = identity('u3');
    await desk.tellGone(ref, { generation: 1, deleting: true });
    await assert.rejects(history('u3'), /not found/);
  });

  it('lists the runs by UID', async () => {
    const desk = createTemporalDesk({ client: env.client, searchAttributes: false });
    await desk.ensure(identity('u4'));
    await eventually(async () => assert.ok((await desk.running()).has('u4')));
  });

  it('gives up a list of runs that hangs', { timeout: 30_000 }, async () => {
    const [host = '', port] = env.address.split(':');
    const relay = await startRelay({ host, port: Number(port) });
    const connection = await Connection.connect({ address: `127.0.0.1:${relay.port}` });
    try {
      const client = new Client({ connection, namespace: env.namespace ?? 'default' });
      const desk = createTemporalDesk({ client, searchAttributes: false, deadlineMs: 2_000 });
      assert.ok((await desk.running()).size > 0);
      relay.hold();
      await assert.rejects(desk.running(), (error) => grpcCodeOf(error) === deadlineExceeded);
    } finally {
      await connection.close();
      await relay.stop();
    }
  });

  it('knows Temporal without workers from Temporal away', async () => {
    const desk = createTemporalDesk({ client: env.client, searchAttributes: false });
    assert.equal(await desk.state(), 'noWorkers');
    const connection = env.connection;
    const elsewhere = new Client({ connection, namespace: 'absent' });
    assert.equal(
      await createTemporalDesk({ client: elsewhere, searchAttributes: false }).state(),
      'down',
    );
  });

  it('waits for a namespace that is missing and says how to make it', async () => {
    const settings = { address: env.address, namespace: 'later', apiKey: null, tls: null };
    const { signal } = new AbortController();
    lines.length = 0;
    const connecting = connectClient({ settings, log, signal, plugins: [] });
    await eventually(() => lines.length > 0);
    assert.match(
      String(lines[0]?.['reason']),
      /no namespace "later"\. Create it: temporal operator/,
    );
    await env.connection.workflowService.registerNamespace({
      namespace: 'later',
      workflowExecutionRetentionPeriod: msToTs('1 day'),
    });
    const { connection } = await connecting;
    await connection.close();
    assert.equal(lines.filter(({ level }) => level === 40).length, 1);
  });

  it('stops waiting for Temporal when it is told to', async () => {
    const settings = { address: '127.0.0.1:1', namespace: 'n', apiKey: null, tls: null };
    const stop = new AbortController();
    lines.length = 0;
    const connecting = connectClient({ settings, log, signal: stop.signal, plugins: [] });
    await eventually(() => lines.length > 0, 15_000);
    stop.abort(new Error('SIGTERM'));
    await assert.rejects(connecting);
  });
});
