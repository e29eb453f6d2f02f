import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { withLab, type TestLab } from './testLab.ts';

const ONE = '/nodes/pve1/qemu';
const TWO = '/nodes/pve2/qemu';
const SEEDS = '/nodes/pve1/storage/proxy-seeds';

const said = ({ status, reason }: { status: number; reason: string }): string =>
  `${status} ${reason}`;

/** Clones 9001 as 101, linked. */
const make101 = (lab: TestLab): Promise<string> =>
  lab.exit('POST', `${ONE}/9001/clone`, { newid: 101, name: 'one' });

describe('1. order of checks', () => {
  it('asks who it is, then whether it exists, then for the right, the node, the shape and the VM', () =>
    withLab(async (lab) => {
      const bad = { cores: 'many' };
      const nobody = { token: 'nobody@pve!tok' };
      const wrong = { secret: '00000000-0000-4000-8000-00000000dead' };
      const unknown = await lab.ask('GET', '/nosuch', {}, wrong);
      assert.equal(said(unknown), '401 Authentication failed!');
      assert.ok(unknown.seconds >= 3 && unknown.seconds < 4, `${unknown.seconds} s`);
      assert.equal((await lab.ask('GET', '/nosuch', {}, nobody)).status, 501);
      lab.simulator.setNode('pve2', { state: 'dead' });
      const on = (node: string, options = {}): ReturnType<TestLab['ask']> =>
        lab.ask('PUT', `/nodes/${node}/qemu/9999/config`, bad, options);
      assert.equal((await on('pve2', nobody)).status, 403);
      assert.equal(said(await on('pve2')), '595 No route to host');
      assert.equal(said(await on('pve1')), '400 Parameter verification failed.');
      const missing = await lab.ask('PUT', `${ONE}/9999/config`, { cores: 2 });
      assert.match(said(missing), /^500 Configuration file .* does not exist$/);
    }));
});

describe('2. shape of errors', () => {
  it('gives the first line as reason, the text with its newline as message, and closes', () =>
    withLab(async (lab) => {
      const missing = await lab.ask('GET', `${ONE}/9999/config`);
      assert.ok(missing.body.includes(`"message":"${missing.reason}\\n"`), missing.body);
      assert.equal(missing.headers['Connection'], 'close');
      lab.simulator.setNode('pve2', { state: 'dead' });
      const dead = await lab.ask('GET', `${TWO}/9003/config`);
      assert.deepEqual([dead.status, dead.body], [595, '']);
    }));
});

describe('3. two views of a guest', () => {
  it('shows node, lock and tags at once, and name and status after a round of pvestatd', () =>
    withLab(async (lab) => {
      await make101(lab);
      await lab.ask('PUT', `${ONE}/101/config`, { tags: 'egress' });
      const fresh = await lab.row(101);
      assert.deepEqual(
        [fresh?.['status'], fresh?.['name'], fresh?.['tags']],
        ['unknown', undefined, 'egress'],
      );
      await lab.advance(10);
      assert.deepEqual((await lab.row(101))?.['name'], 'one');
    }));

  it('shows a reused VMID as its predecessor until then', () =>
    withLab(async (lab) => {
      await make101(lab);
      await lab.advance(10);
      await lab.exit('DELETE', `${ONE}/101`);
      await lab.exit('POST', `${ONE}/9001/clone`, { newid: 101, name: 'two' });
      assert.equal((await lab.row(101))?.['name'], 'one');
      await lab.advance(10);
      assert.equal((await lab.row(101))?.['name'], 'two');
    }));

  it('forgets what pvestatd said five minutes ago', () =>
    withLab(async (lab) => {
      lab.simulator.setNode('pve1', { pvestatd: false });
      await lab.advance(280);
      assert.equal((await lab.row(9001))?.['name'], 'egress-template');
      await lab.advance(25);
      const row = await lab.row(9001);
      assert.deepEqual(
        [row?.['status'], row?.['name'], row?.['node']],
        ['unknown', undefined, 'pve1'],
      );
    }));

  it('goes backwards between the workers of pveproxy when it is told to', () =>
    withLab(
      async (lab) => {
        await lab.exit('POST', `${TWO}/9003/clone`, { newid: 101, name: 'one' });
        await lab.row(101);
        await lab.advance(0.4);
        lab.simulator.refreshStats();
        // Each connection is another worker's: some have an old copy still.
        const names: unknown[] = [];
        for (let read = 0; read < 6; read += 1) names.push((await lab.row(101))?.['name']);
        assert.ok(names.includes('one'), String(names));
        assert.ok(names.lastIndexOf(undefined) > names.indexOf('one'), String(names));
        await lab.advance(2.5);
        for (let read = 0; read < 3; read += 1) assert.equal((await lab.row(101))?.['name'], 'one');
      },
      { lab: { workerCacheSeconds: 2 } },
    ));
});

describe('4. tasks', () => {
  it('are known on their own node alone, and look unknown elsewhere', () =>
    withLab(async (lab) => {
      const clone = await lab.ask('POST', `${TWO}/9003/clone`, { newid: 101 });
      await lab.end(clone);
      const upid = String(clone.data);
      assert.match(upid, /^UPID:pve2:/);
      const right = await lab.ask('GET', `/nodes/pve2/tasks/${upid}/status`);
      assert.ok(right.body.includes('"exitstatus":"OK"'));
      const wrong = await lab.ask('GET', `/nodes/pve1/tasks/${upid}/status`);
      assert.deepEqual([wrong.status, wrong.errors], [400, { upid: 'no such task' }]);
      const log = await lab.ask('GET', `/nodes/pve1/tasks/${upid}/log`);
      assert.ok(log.body.includes('unable to open file - No such file or directory'));
    }));

  it('run, and then have stopped; fifty of a list or a log are shown unless more are asked for', () =>
    withLab(async (lab) => {
      const slow = { newid: 101, full: 1, bwlimit: 512 };
      const clone = await lab.ask('POST', `${ONE}/9001/clone`, slow);
      const path = `/nodes/pve1/tasks/${String(clone.data)}/status`;
      const running = await lab.ask('GET', path);
      assert.ok(
        running.body.includes('"status":"running"') && !running.body.includes('exitstatus'),
      );
      assert.equal(await lab.end(clone), 'OK');
      assert.ok((await lab.ask('GET', path)).body.includes('"status":"stopped"'));
      for (let count = 0; count < 55; count += 1) await lab.exit('POST', `${ONE}/101/status/stop`);
      const length = async (params: Record<string, number>): Promise<unknown> => {
        const { data } = await lab.ask('GET', '/nodes/pve1/tasks', params);
        return Array.isArray(data) ? data.length : null;
      };
      assert.deepEqual([await length({}), await length({ limit: 500 })], [50, 56]);
    }));

  it('of a killed worker end in «unexpected status»', () =>
    withLab(async (lab) => {
      const slow = { newid: 101, full: 1, bwlimit: 512 };
      const clone = await lab.ask('POST', `${ONE}/9001/clone`, slow);
      await lab.advance(1);
      lab.simulator.killTask(String(clone.data));
      assert.equal(await lab.end(clone), 'unexpected status');
    }));

  it('are forgotten by the daily clean-up when newer ones have filled the index', () =>
    withLab(async (lab) => {
      const old = await lab.ask('POST', `${ONE}/9001/status/stop`);
      await lab.end(old);
      const status = `/nodes/pve1/tasks/${String(old.data)}/status`;
      lab.simulator.purgeTasks();
      assert.equal((await lab.ask('GET', status)).status, 200);
      const spec = { node: 'pve1', type: 'qmstop', id: '9001', authId: 'root@pam' };
      for (let count = 0; count < 1000; count += 1) {
        lab.simulator.core.tasks.start(spec, () => Promise.resolve());
      }
      await lab.advance(1);
      assert.equal((await lab.ask('GET', status)).status, 200);
      lab.simulator.purgeTasks();
      const gone = await lab.ask('GET', status);
      assert.deepEqual([gone.status, gone.errors], [400, { upid: 'no such task' }]);
    }));
});

describe('10. ISO files', () => {
  const upload = (lab: TestLab, parts: Record<string, string>[]): ReturnType<TestLab['ask']> =>
    lab.ask(
      'POST',
      `${SEEDS}/upload`,
      {},
      {
        request: { multipartParts: parts.map((part) => ({ name: 'x', ...part })) },
      },
    );
  const content = { name: 'content', data: 'iso' };

  it('are taken in one order and under one field name, and stored under a tame name', () =>
    withLab(async (lab) => {
      const file = { name: 'filename', filename: 'a b.iso', data: 'x' };
      const other = { name: 'file', filename: 'a.iso', data: 'x' };
      assert.equal((await upload(lab, [file, content])).status, 400);
      assert.match((await upload(lab, [content, other])).reason, /^wrong field name 'file'/);
      const good = await upload(lab, [content, file]);
      assert.match(String(good.data), /^UPID:pve1:.*:imgcopy::/);
      await lab.end(good);
      assert.ok((await lab.ask('GET', `${SEEDS}/content`)).body.includes('iso/a_b.iso'));
    }));

  it('are overwritten in place, without a word to whoever uses them', () =>
    withLab(async (lab) => {
      await lab.upload('proxy-seeds', 'seed.iso', { size: 1000 });
      await lab.upload('proxy-seeds', 'seed.iso', { size: 2000 });
      const { body } = await lab.ask('GET', `${SEEDS}/content`);
      assert.equal(body.match(/seed\.iso/g)?.length, 1);
      assert.ok(body.includes('"size":2000'));
    }));

  it('are deleted even when they are not there, or attached, and then the next start fails', () =>
    withLab(async (lab) => {
      assert.equal(await lab.exit('DELETE', `${SEEDS}/content/iso/none.iso`), 'OK');
      await make101(lab);
      await lab.upload('proxy-seeds', 'seed.iso');
      await lab.ask('PUT', `${ONE}/101/config`, { ide2: 'proxy-seeds:iso/seed.iso,media=cdrom' });
      assert.equal(await lab.exit('DELETE', `${SEEDS}/content/iso/seed.iso`), 'OK');
      assert.equal(
        await lab.exit('POST', `${ONE}/101/status/start`),
        "volume 'proxy-seeds:iso/seed.iso' does not exist",
      );
    }));

  it('for another node are lost without an answer when its logins take over five seconds', () =>
    withLab(async (lab) => {
      lab.simulator.setNode('pve2', { sshSeconds: 8 });
      const path = '/nodes/pve2/storage/proxy-seeds/upload';
      const parts = [content, { name: 'filename', filename: 'slow.iso', data: 'x' }];
      const answer = await lab.ask('POST', path, {}, { request: { multipartParts: parts } });
      assert.equal(answer.reason, 'closed');
      await lab.advance(5);
      const task = lab.simulator.tasks.find(({ type }) => type === 'imgcopy');
      assert.match(task?.exitstatus ?? '', /^failed to stat '\/var\/tmp\/pveupload-/);
      const listed = await lab.ask('GET', '/nodes/pve2/storage/proxy-seeds/content');
      assert.ok(!listed.body.includes('slow.iso'));
    }));
});

describe('11. guest agent', () => {
  it('is not configured, then not running, then silent for three seconds, then answers', () =>
    withLab(async (lab) => {
      await make101(lab);
      const path = `${ONE}/101/agent/network-get-interfaces`;
      lab.simulator.editConfig(101, { agent: null });
      assert.equal((await lab.ask('GET', path)).reason, 'No QEMU guest agent configured');
      lab.simulator.editConfig(101, { agent: '1' });
      assert.equal((await lab.ask('GET', path)).reason, 'VM 101 is not running');
      await lab.exit('POST', `${ONE}/101/status/start`);
      const silent = await lab.ask('GET', path);
      assert.equal(silent.reason, 'QEMU guest agent is not running');
      assert.ok(silent.seconds >= 3 && silent.seconds < 4, `${silent.seconds} s`);
      await lab.advance(15);
      assert.ok((await lab.ask('GET', path)).body.includes('"ip-address":"10.99.'));
      assert.equal((await lab.ask('GET', `${ONE}/101/agent/ping`)).status, 501);
      assert.equal((await lab.ask('POST', `${ONE}/101/agent/ping`)).body, '{"data":{"result":{}}}');
    }));

  it('answers an error of the guest with 200', () =>
    withLab(async (lab) => {
      await lab.exit('POST', `${ONE}/9001/clone`, { newid: 101, name: 'demo-agent-error' });
      await lab.exit('POST', `${ONE}/101/status/start`);
      await lab.advance(15);
      const answer = await lab.ask('GET', `${ONE}/101/agent/network-get-interfaces`);
      assert.equal(answer.status, 200);
      assert.ok(answer.body.includes('"error":{"class":"CommandNotFound"'), answer.body);
    }));
});
