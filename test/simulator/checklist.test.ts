import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { baseFixture, withLab, type TestLab } from './testLab.ts';

const ONE = '/nodes/pve1/qemu';
const TWO = '/nodes/pve2/qemu';
const SEEDS = '/nodes/pve1/storage/proxy-seeds';
const LOCKED = "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout";
const ADMIN = { token: 'admin@pve!tok' };
const base = baseFixture();

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

describe('5. clones', () => {
  it('are a placeholder, then locked with everything, then unlocked, then on their target', () =>
    withLab(async (lab) => {
      const params = { newid: 101, name: 'one', full: 1, bwlimit: 1024, target: 'pve2' };
      const clone = await lab.ask('POST', `${ONE}/9002/clone`, params);
      await lab.advance(0.5);
      const placeholder = await lab.config(101);
      assert.deepEqual(
        [placeholder['lock'], placeholder['name'], placeholder['description']],
        ['clone', undefined, ' qmclone temporary file'],
      );
      assert.equal(await lab.end(clone), 'OK');
      const done = await lab.config(101, 'pve2');
      assert.deepEqual(
        [done['lock'], done['name'], done['template']],
        [undefined, 'one', undefined],
      );
      assert.match((await lab.ask('GET', `${ONE}/101/config`)).reason, /does not exist$/);
    }));

  it('of a template are linked unless they are asked to be full', () =>
    withLab(async (lab) => {
      await make101(lab);
      assert.match(String((await lab.config(101))['scsi0']), /^local:9001\/base-9001-disk-0/);
      await lab.exit('POST', `${ONE}/9001/clone`, { newid: 102, full: 1 });
      assert.match(String((await lab.config(102))['scsi0']), /^local:102\/vm-102-disk-0/);
    }));

  it('clean up when they fail, and leave their lock and their disk when they are killed', () =>
    withLab(async (lab) => {
      const slow = { newid: 101, full: 1, bwlimit: 512 };
      const stopped = await lab.ask('POST', `${ONE}/9001/clone`, slow);
      await lab.advance(1);
      await lab.ask('DELETE', `/nodes/pve1/tasks/${String(stopped.data)}`);
      assert.equal((await lab.ask('GET', '/cluster/nextid', { vmid: 101 })).status, 200);
      const disks = async (): Promise<string> =>
        (await lab.ask('GET', '/nodes/pve1/storage/local/content', {}, ADMIN)).body;
      assert.ok(!(await disks()).includes('vm-101-disk'));
      const killed = await lab.ask('POST', `${ONE}/9001/clone`, slow);
      await lab.advance(1);
      lab.simulator.killTask(String(killed.data));
      assert.equal((await lab.config(101))['lock'], 'clone');
      assert.ok((await disks()).includes('vm-101-disk'));
      assert.equal(await lab.exit('DELETE', `${ONE}/101`), 'VM is locked (clone)');
    }));

  it('wait one second for the lock of their source', () =>
    withLab(async (lab) => {
      lab.simulator.holdLock('/var/lock/qemu-server/lock-9001.conf', 5, 'pve1');
      const before = lab.clock.now();
      const text = "can't lock file '/var/lock/qemu-server/lock-9001.conf' - got timeout";
      assert.equal(await make101(lab), text);
      assert.ok(lab.clock.now() - before < 1500);
    }));

  it('beyond what their storage bears at once end in its lock timeout and leave nothing', () =>
    withLab(async (lab) => {
      lab.simulator.setStorage('local', { cloneSlots: 2 });
      const slow = { full: 1, bwlimit: 512 };
      const answers = await lab.askAll(
        [101, 102, 103].map((newid) => ['POST', `${ONE}/9001/clone`, { newid, ...slow }] as const),
      );
      const ends: string[] = [];
      for (const answer of answers) ends.push(await lab.end(answer));
      const text =
        "clone failed: can't lock file '/var/lock/pve-manager/pve-storage-local' - got timeout";
      assert.deepEqual(ends.toSorted(), ['OK', 'OK', text]);
      const lost = 101 + ends.indexOf(text);
      assert.equal((await lab.ask('GET', '/cluster/nextid', { vmid: lost })).status, 200);
    }));

  it('contend for the lock of a shared storage over all nodes', () =>
    withLab(async (lab) => {
      lab.simulator.holdLock('storage-shared-images', 60);
      const clone = await lab.ask('POST', `${ONE}/9002/clone`, { newid: 101 });
      assert.equal(
        await lab.end(clone),
        "clone failed: cfs-lock 'storage-shared-images' error: got lock request timeout",
      );
      assert.ok(lab.log(clone).includes("trying to acquire cfs lock 'storage-shared-images' ..."));
    }));
});

describe('6. destroy', () => {
  it('refuses running and protected VMs at once, locked ones in its task', () =>
    withLab(async (lab) => {
      await make101(lab);
      await lab.exit('POST', `${ONE}/101/status/start`);
      const running = await lab.ask('DELETE', `${ONE}/101`);
      assert.equal(said(running), '500 VM 101 is running - destroy failed');
      await lab.exit('POST', `${ONE}/101/status/stop`);
      await lab.ask('PUT', `${ONE}/101/config`, { protection: 1 });
      const kept = await lab.ask('DELETE', `${ONE}/101`);
      assert.equal(said(kept), "500 can't remove VM 101 - protection mode enabled");
      await lab.ask('PUT', `${ONE}/101/config`, { protection: 0 });
      lab.simulator.editConfig(101, { lock: 'backup' });
      assert.equal(await lab.exit('DELETE', `${ONE}/101`), 'VM is locked (backup)');
    }));

  it('is a config with nothing but `lock: destroyed` until its end, and keeps the ISO', () =>
    withLab(async (lab) => {
      await make101(lab);
      await lab.upload('proxy-seeds', 'seed-101.iso');
      const ide2 = 'proxy-seeds:iso/seed-101.iso,media=cdrom';
      await lab.ask('PUT', `${ONE}/101/config`, { ide2 });
      const destroy = await lab.ask('DELETE', `${ONE}/101`, { purge: 1 });
      await lab.advance(0.2);
      const { digest: _digest, ...left } = await lab.config(101);
      assert.deepEqual(left, { lock: 'destroyed' });
      assert.equal(await lab.end(destroy), 'OK');
      assert.ok((await lab.ask('GET', `${SEEDS}/content`)).body.includes('seed-101.iso'));
    }));

  it('warns of a disk that cannot be removed and leaks it', () =>
    withLab(async (lab) => {
      await make101(lab);
      for (const volume of lab.simulator.cluster.storages.volumes) {
        if (volume.vmid === 101) volume.stuck = true;
      }
      assert.equal(await lab.exit('DELETE', `${ONE}/101`), 'WARNINGS: 1');
      assert.equal((await lab.ask('GET', '/cluster/nextid', { vmid: 101 })).status, 200);
      const content = await lab.ask('GET', '/nodes/pve1/storage/local/content', {}, ADMIN);
      assert.ok(content.body.includes('vm-101-disk-0'));
    }));

  it('finds disks that no config names when it is told to, and fails when a storage is offline', () =>
    withLab(async (lab) => {
      await make101(lab);
      await lab.ask('PUT', `${ONE}/101/config`, { delete: 'scsi0' });
      lab.simulator.editConfig(101, { unused0: null });
      const params = { 'destroy-unreferenced-disks': 1 };
      lab.simulator.setStorage('no-iso', { mounted: false });
      assert.match(await lab.exit('DELETE', `${ONE}/101`, params), /^unable to activate storage/);
      assert.equal((await lab.config(101))['lock'], 'destroyed');
      lab.simulator.setStorage('no-iso', { mounted: true });
      lab.simulator.editConfig(101, { lock: null });
      assert.equal(await lab.exit('DELETE', `${ONE}/101`, params), 'OK');
      const content = await lab.ask('GET', '/nodes/pve1/storage/local/content', {}, ADMIN);
      assert.ok(!content.body.includes('vm-101-disk-0'));
    }));

  for (const [lock, params, text] of [
    [
      'file-user_cfg',
      {},
      /^access permissions cleanup for VM 101 failed: cfs-lock 'file-user_cfg'/,
    ],
    ['file-jobs_cfg', { purge: 1 }, /^cfs-lock 'file-jobs_cfg' error: got lock request timeout$/],
    ['domain-ha', { purge: 1 }, /^cfs-lock 'domain-ha' error: got lock request timeout$/],
  ] as const) {
    it(`strands the VM when the lock ${lock} of the cluster cannot be had`, () =>
      withLab(async (lab) => {
        await make101(lab);
        lab.simulator.holdLock(lock, 30);
        assert.match(await lab.exit('DELETE', `${ONE}/101`, params), text);
        assert.equal((await lab.config(101))['lock'], 'destroyed');
        await lab.advance(30);
        assert.equal(await lab.exit('DELETE', `${ONE}/101`, params), 'VM is locked (destroyed)');
      }));
  }
});

describe('7. config', () => {
  it('of a running VM keeps pending what cannot be changed live, and says 200', () =>
    withLab(async (lab) => {
      await make101(lab);
      await lab.exit('POST', `${ONE}/101/status/start`);
      const put = await lab.ask('PUT', `${ONE}/101/config`, { cores: 2, name: 'renamed' });
      assert.equal(put.body, '{"data":null}');
      assert.deepEqual(
        [(await lab.config(101))['cores'], (await lab.config(101))['name']],
        [2, 'renamed'],
      );
      const current = await lab.ask('GET', `${ONE}/101/config`, { current: 1 });
      assert.ok(current.body.includes('"cores":1') && current.body.includes('renamed'));
      await lab.exit('POST', `${ONE}/101/status/stop`);
      const after = await lab.ask('GET', `${ONE}/101/config`, { current: 1 });
      assert.ok(after.body.includes('"cores":2'));
    }));

  it('makes a new MAC where none was given, orders tags, notes sizes and boots from new CD-ROMs', () =>
    withLab(async (lab) => {
      await make101(lab);
      await lab.upload('proxy-seeds', 'seed-101.iso', { size: 374_784 });
      const net0 = 'virtio,bridge=vmbr0';
      await lab.ask('PUT', `${ONE}/101/config`, { net0, tags: 'Beta,alpha,beta' });
      const first = await lab.config(101);
      await lab.ask('PUT', `${ONE}/101/config`, { net0 });
      const second = await lab.config(101);
      assert.equal(first['tags'], 'alpha;beta');
      assert.notEqual(first['net0'], second['net0']);
      assert.notEqual(first['digest'], second['digest']);
      const ide2 = 'proxy-seeds:iso/seed-101.iso,media=cdrom';
      await lab.ask('PUT', `${ONE}/101/config`, { ide2 });
      const third = await lab.config(101);
      assert.deepEqual([third['ide2'], third['boot']], [`${ide2},size=366K`, 'order=scsi0;ide2']);
      const stale = { cores: 2, digest: String(first['digest']) };
      const refused = await lab.ask('PUT', `${ONE}/101/config`, stale);
      assert.equal(said(refused), '500 checksum mismatch (file change by other user?)');
    }));
});

describe('8. locks', () => {
  it('of a config never expire, and no token may pass over them', () =>
    withLab(async (lab) => {
      await make101(lab);
      lab.simulator.editConfig(101, { lock: 'backup' });
      await lab.advance(3600);
      const put = await lab.ask('PUT', `${ONE}/101/config`, { cores: 2 });
      assert.equal(said(put), '500 VM is locked (backup)');
      for (const [method, path] of [
        ['PUT', `${ONE}/101/config`],
        ['POST', `${ONE}/101/status/start`],
        ['DELETE', `${ONE}/101`],
      ] as const) {
        const params = method === 'PUT' ? { cores: 2, skiplock: 1 } : { skiplock: 1 };
        const skipped = await lab.ask(method, path, params, ADMIN);
        assert.deepEqual(
          [skipped.status, skipped.errors],
          [400, { skiplock: 'Only root may use this option.' }],
        );
      }
    }));

  it('of a file are waited for ten seconds', () =>
    withLab(async (lab) => {
      await make101(lab);
      lab.simulator.holdLock('/var/lock/qemu-server/lock-101.conf', 60, 'pve1');
      const put = await lab.ask('PUT', `${ONE}/101/config`, { cores: 2 });
      assert.equal(said(put), `500 ${LOCKED}`);
      assert.ok(put.seconds >= 10 && put.seconds < 11, `${put.seconds} s`);
      assert.equal(await lab.exit('POST', `${ONE}/101/status/start`), LOCKED);
    }));
});

describe('9. power', () => {
  it('start of a missing, locked or running VM is a failed task, stop of a stopped one a good one', () =>
    withLab(async (lab) => {
      await make101(lab);
      assert.match(await lab.exit('POST', `${ONE}/999/status/start`), /does not exist$/);
      lab.simulator.editConfig(101, { lock: 'backup' });
      assert.equal(await lab.exit('POST', `${ONE}/101/status/start`), 'VM is locked (backup)');
      assert.equal(await lab.exit('POST', `${ONE}/101/status/stop`), 'OK');
      lab.simulator.editConfig(101, { lock: null });
      await lab.exit('POST', `${ONE}/101/status/start`);
      assert.equal(await lab.exit('POST', `${ONE}/101/status/start`), 'VM 101 already running');
    }));

  it('start right after stop leaves the lock held for up to thirty seconds', () =>
    withLab(async (lab) => {
      await make101(lab);
      await lab.exit('POST', `${ONE}/101/status/start`);
      await lab.exit('POST', `${ONE}/101/status/stop`);
      await lab.exit('POST', `${ONE}/101/status/start`);
      assert.equal(said(await lab.ask('PUT', `${ONE}/101/config`, { cores: 2 })), `500 ${LOCKED}`);
      await lab.advance(20);
      assert.equal((await lab.ask('PUT', `${ONE}/101/config`, { cores: 2 })).status, 200);
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
