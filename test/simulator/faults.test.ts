import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { certificatesInMemory, type Certificates } from './certificates.ts';
import { encodeRequest, sendBytes, type Reaction } from './conformance/wire.ts';
import { eventually } from '../support/eventually.ts';
import { startSimulator, type Simulator } from './simulator.ts';

const FIXTURE = new URL('fixtures/local.yaml', import.meta.url).pathname;

describe('faults', () => {
  let tls: Certificates;
  let simulator: Simulator;

  before(async () => {
    tls = await certificatesInMemory();
    simulator = await startSimulator({ fixture: FIXTURE, tls, timeScale: 0.005 });
  });
  beforeEach(() => {
    simulator.faults.clear();
  });
  after(async () => {
    await simulator.close();
  });

  async function ask(
    method: string,
    path: string,
    params: Readonly<Record<string, string | number>> = {},
  ): Promise<Reaction> {
    const bytes = encodeRequest(
      { method, path: `/api2/json${path}`, params: { ...params } },
      { text: (text) => text },
    );
    const target = { host: '127.0.0.1', port: simulator.port, ca: tls.ca };
    return sendBytes(target, bytes, () => undefined);
  }

  async function clone(newid: number, name: string): Promise<string> {
    const reaction = await ask('POST', '/nodes/pv1-1/qemu/9001/clone', { newid, name, full: 1 });
    assert.ok(reaction !== 'closed');
    return /"data":"(UPID:[^"]+)"/.exec(reaction.body)?.[1] ?? '';
  }

  async function exit(upid: string): Promise<string | undefined> {
    await eventually(() => simulator.core.tasks.find(upid)?.running === false);
    return simulator.core.tasks.find(upid)?.exitstatus;
  }

  it('of a task that hangs and of a slow request last until they are told to go on', async () => {
    const { faults, core } = simulator;
    faults.push({ path: '/clone$', action: { kind: 'task', hang: true } });
    const upid = await clone(140, 'held');
    faults.push({ path: '^/version$', action: { kind: 'slow', seconds: 1e6 } });
    let answered = false;
    const version = ask('GET', '/version').finally(() => (answered = true));
    await eventually(() => faults.rules.every(({ times }) => times === 0));
    assert.deepEqual([core.tasks.find(upid)?.running, answered], [true, false]);
    const [, slow] = faults.rules;
    faults.goOn(slow?.id);
    const reaction = await version;
    assert.ok(reaction !== 'closed');
    assert.equal(reaction.status, 200);
    assert.equal(core.tasks.find(upid)?.running, true, 'that of the other rule hangs on');
    faults.goOn();
    assert.equal(await exit(upid), 'OK');
    assert.ok(core.cluster.vms.has(140));
  });

  it('act on the nth matching request and only as often as they say', async () => {
    simulator.faults.push({
      path: '^/version$',
      nth: 2,
      action: { kind: 'status', status: 500, reason: 'no luck', when: 'before' },
    });
    const statuses = [];
    for (let count = 0; count < 3; count += 1) {
      const reaction = await ask('GET', '/version');
      statuses.push(reaction === 'closed' ? 'closed' : reaction.status);
    }
    assert.deepEqual(statuses, [200, 500, 200]);
  });

  it('can lose the answer of a write that was carried out', async () => {
    const config = '/nodes/pv1-1/qemu/9001/config';
    simulator.faults.push({
      method: 'PUT',
      path: config,
      action: { kind: 'status', status: 596, reason: 'Connection timed out', when: 'after' },
    });
    const reaction = await ask('PUT', config, { tags: 'written' });
    assert.ok(reaction !== 'closed');
    assert.equal(reaction.status, 596);
    assert.equal(reaction.body, '');
    assert.equal(simulator.cluster.vms.get(9001)?.config.get('tags'), 'written');
  });

  it('can cut the connection before anything was done', async () => {
    const config = '/nodes/pv1-1/qemu/9001/config';
    simulator.faults.push({ path: config, action: { kind: 'reset', when: 'before' } });
    assert.equal(await ask('PUT', config, { tags: 'never' }), 'closed');
    assert.notEqual(simulator.cluster.vms.get(9001)?.config.get('tags'), 'never');
  });

  it('can answer with a body that is no JSON', async () => {
    simulator.faults.push({ path: '^/version$', action: { kind: 'malformed' } });
    const reaction = await ask('GET', '/version');
    assert.ok(reaction !== 'closed');
    assert.throws(() => void JSON.parse(reaction.body));
  });

  it('can hide a running task behind a 500', async () => {
    simulator.faults.push({ path: '/clone$', action: { kind: 'lostUpid' } });
    const reaction = await ask('POST', '/nodes/pv1-1/qemu/9001/clone', { newid: 301, full: 1 });
    assert.ok(reaction !== 'closed');
    assert.match(reaction.reason, /active\.lock' - got timeout/);
    await eventually(() => simulator.cluster.vms.get(301)?.config.has('lock') === false);
  });

  it('can make a task end in a text, in warnings, or without a trace', async () => {
    simulator.faults.push({ path: '/clone$', action: { kind: 'task', fail: 'clone failed: no' } });
    assert.equal(await exit(await clone(302, 'fails')), 'clone failed: no');
    assert.equal(simulator.cluster.vms.has(302), false);

    simulator.faults.push({ path: '/clone$', action: { kind: 'task', warnings: 2 } });
    assert.equal(await exit(await clone(303, 'warns')), 'WARNINGS: 2');

    simulator.faults.push({ path: '/clone$', action: { kind: 'task', vanish: true } });
    const upid = await clone(304, 'vanishes');
    await eventually(() => simulator.core.tasks.find(upid) === undefined);
  });

  it('leave a locked placeholder when a clone is killed, and only for the named VM', async () => {
    const upid = await clone(305, 'proxy-demo-clone-lock-1');
    assert.equal(await exit(upid), 'unexpected status');
    assert.equal(simulator.cluster.vms.get(305)?.config.get('lock'), 'clone');
    assert.equal(await exit(await clone(306, 'proxy-demo-clone-lock-1')), 'OK');
    assert.equal(await exit(await clone(307, 'proxy-other')), 'OK');
  });

  it('let nothing happen after a worker was killed, whenever that is', async () => {
    const ends = new Set<string | undefined>();
    for (let vmid = 400; vmid < 440; vmid += 1) {
      const killAfterSeconds = (vmid - 399) * 0.2;
      simulator.faults.push({ path: '/clone$', action: { kind: 'task', killAfterSeconds } });
      const end = await exit(await clone(vmid, `killed-${vmid}`));
      ends.add(end);
      const atKill = simulator.cluster.vms.get(vmid)?.config.get('lock');
      // A request takes longer than what a worker still had to do.
      await ask('GET', '/version');
      const lock = simulator.cluster.vms.get(vmid)?.config.get('lock');
      assert.equal(lock, end === 'OK' ? undefined : atKill, `killed after ${killAfterSeconds} s`);
      if (end !== 'OK' && simulator.cluster.vms.has(vmid)) assert.equal(lock, 'clone');
    }
    assert.deepEqual(ends, new Set(['unexpected status', 'OK']));
  });

  it('come through the admin port as well', async () => {
    const pushed = await fetch(`${simulator.adminUrl}/faults`, {
      method: 'POST',
      body: JSON.stringify({
        path: '^/version$',
        action: { kind: 'status', status: 503, reason: 'busy', when: 'before' },
      }),
    });
    assert.equal(pushed.status, 200);
    const reaction = await ask('GET', '/version');
    assert.ok(reaction !== 'closed');
    assert.equal(reaction.status, 503);
    const refused = await fetch(`${simulator.adminUrl}/faults`, { method: 'POST', body: '{}' });
    assert.equal(refused.status, 400);
  });

  it('of a dead node end its tasks and answer 595', async () => {
    simulator.setNode('pv1-2', { state: 'dead' });
    const reaction = await ask('GET', '/nodes/pv1-2/status');
    simulator.setNode('pv1-2', { state: 'up' });
    assert.ok(reaction !== 'closed');
    assert.equal(`${reaction.status} ${reaction.reason}`, '595 No route to host');
  });
});
