import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { baseFixture, withLab, type TestLab } from './testLab.ts';

const ONE = '/nodes/pve1/qemu';
const ADMIN = { token: 'admin@pve!tok' };
const base = baseFixture();

/** Clones 9001 as 101, linked. */
const make101 = (lab: TestLab): Promise<string> =>
  lab.exit('POST', `${ONE}/9001/clone`, { newid: 101, name: 'one' });

describe('12. HA', () => {
  const managed = async (lab: TestLab): Promise<void> => {
    await lab.exit('POST', `${ONE}/9002/clone`, { newid: 101 });
    await lab.ask('POST', '/cluster/ha/resources', { sid: 'vm:101', state: 'started' }, ADMIN);
    await lab.advance(25);
  };
  const status = async (lab: TestLab, node = ONE): Promise<string> =>
    (await lab.ask('GET', `${node}/101/status/current`)).body;

  it('ends its requests before anything happened', () =>
    withLab(async (lab) => {
      await managed(lab);
      const stop = await lab.ask('POST', `${ONE}/101/status/stop`);
      assert.match(String(stop.data), /:hastop:101:/);
      assert.equal(await lab.end(stop), 'OK');
      assert.match(await status(lab), /"status":"running"/);
      assert.equal(
        (await lab.ask('DELETE', `${ONE}/101`, { purge: 1 })).reason,
        'VM 101 is running - destroy failed',
      );
      await lab.advance(15);
      assert.match(await status(lab), /"status":"stopped"/);
      assert.equal(await lab.exit('DELETE', `${ONE}/101`, { purge: 1 }), 'OK');
    }));

  it('starts a VM again that was killed', () =>
    withLab(async (lab) => {
      await managed(lab);
      lab.simulator.powerOffVm(101);
      assert.match(await status(lab), /"status":"stopped"/);
      await lab.advance(15);
      assert.match(await status(lab), /"status":"running"/);
    }));

  it('moves a VM away from a dead node after two minutes', () =>
    withLab(async (lab) => {
      await lab.exit('POST', `${ONE}/9002/clone`, { newid: 101, target: 'pve2' });
      await lab.ask('POST', '/cluster/ha/resources', { sid: 'vm:101', state: 'started' }, ADMIN);
      await lab.advance(25);
      lab.simulator.setNode('pve2', { state: 'dead' });
      await lab.advance(80);
      assert.deepEqual((await lab.row(101))?.['hastate'], 'fence');
      await lab.advance(80);
      assert.equal((await lab.row(101))?.['node'], 'pve1');
      assert.match(await status(lab), /"status":"running"/);
    }));
});

describe('13. VMIDs', () => {
  it('are proposed as text and kept for nobody; of two clones of one, one is made', () =>
    withLab(async (lab) => {
      const first = await lab.ask('GET', '/cluster/nextid');
      assert.equal(first.body, '{"data":"100"}');
      assert.equal((await lab.ask('GET', '/cluster/nextid')).data, '100');
      const answers = await lab.askAll([
        ['POST', `${ONE}/9001/clone`, { newid: 100, full: 1 }],
        ['POST', `${ONE}/9001/clone`, { newid: 100, full: 1 }],
      ]);
      const ends: string[] = [];
      for (const answer of answers) ends.push(await lab.end(answer));
      assert.equal(ends.filter((end) => end === 'OK').length, 1, String(ends));
      assert.ok(
        ends.some((end) => /already exists$|got timeout$/.test(end)),
        String(ends),
      );
      assert.equal((await lab.ask('GET', '/cluster/nextid')).data, '101');
    }));

  it('may be those of containers, which a clone finds out too late', () =>
    withLab(
      async (lab) => {
        assert.equal((await lab.row(100))?.['type'], 'lxc');
        const taken = await lab.ask('GET', '/cluster/nextid', { vmid: 100 });
        assert.deepEqual(taken.errors, { vmid: 'VM 100 already exists' });
        assert.match(await lab.exit('POST', `${ONE}/9001/clone`, { newid: 100 }), /File exists$/);
        assert.match((await lab.ask('GET', `${ONE}/100/config`)).reason, /does not exist$/);
        assert.equal((await lab.row(100))?.['type'], 'lxc');
      },
      { fixture: { containers: [{ vmid: 100, node: 'pve1', name: 'ct' }] } },
    ));
});

describe('15. permissions', () => {
  const pooled = {
    roles: [...base.roles, { id: 'Pooled', privileges: ['VM.Allocate', 'VM.Audit', 'Pool.Audit'] }],
    users: [
      ...base.users,
      {
        id: 'pooled@pve',
        tokens: [{ id: 'tok', secret: '00000000-0000-4000-8000-000000000001' }],
      },
    ],
    pools: [{ id: 'proxies', members: [] }],
    acls: [
      ...base.acls,
      { path: '/pool/proxies', principal: 'pooled@pve', role: 'Pooled' },
      { path: '/vms/9001', principal: 'pooled@pve', role: 'ProxyOperator' },
      { path: '/storage/local', principal: 'pooled@pve', role: 'ProxyOperator' },
      { path: '/sdn', principal: 'pooled@pve', role: 'ProxyOperator' },
    ],
  };
  const pool = { token: 'pooled@pve!tok' };

  it('of a pool reach its new VM only when the clone has ended, and no longer than it lives', () =>
    withLab(
      async (lab) => {
        const params = { newid: 101, pool: 'proxies', full: 1, bwlimit: 1024 };
        const clone = await lab.ask('POST', `${ONE}/9001/clone`, params, pool);
        await lab.advance(1);
        assert.equal((await lab.ask('GET', `${ONE}/101/config`, {}, pool)).status, 403);
        assert.equal(await lab.row(101, pool), undefined);
        assert.equal(await lab.end(clone), 'OK');
        assert.equal((await lab.ask('GET', `${ONE}/101/config`, {}, pool)).status, 200);
        assert.equal((await lab.row(101, pool))?.['vmid'], 101);
        assert.equal(await lab.exit('DELETE', `${ONE}/101`, {}, pool), 'OK');
        assert.equal((await lab.ask('GET', `${ONE}/101/config`, {}, pool)).status, 403);
      },
      { fixture: pooled },
    ));

  it('of a pool that cannot be joined leave no VM behind, but one that has moved already', () =>
    withLab(
      async (lab) => {
        lab.simulator.holdLock('file-user_cfg', 60);
        const here = await lab.ask('POST', `${ONE}/9001/clone`, { newid: 101, pool: 'proxies' });
        assert.equal(
          await lab.end(here),
          "clone failed: can't add VM 101 to pool 'proxies': cfs-lock 'file-user_cfg' error: got lock request timeout",
        );
        assert.equal((await lab.ask('GET', '/cluster/nextid', { vmid: 101 })).status, 200);
        const there = { newid: 102, pool: 'proxies', target: 'pve2' };
        assert.match(
          await lab.exit('POST', `${ONE}/9002/clone`, there),
          /^clone failed: can't add/,
        );
        assert.equal((await lab.config(102, 'pve2'))['lock'], undefined);
      },
      { fixture: pooled },
    ));

  it('hide rows and tasks without a word', () =>
    withLab(async (lab) => {
      await make101(lab);
      const nobody = { token: 'nobody@pve!tok' };
      assert.equal(
        (await lab.ask('GET', '/cluster/resources', { type: 'vm' }, nobody)).body,
        '{"data":[]}',
      );
      assert.equal(
        (await lab.ask('GET', '/cluster/tasks', {}, { token: 'nosys@pve!tok' })).body,
        '{"data":[]}',
      );
      assert.notEqual((await lab.ask('GET', '/cluster/tasks')).body, '{"data":[]}');
    }));
});
