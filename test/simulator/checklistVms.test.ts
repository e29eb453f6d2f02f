import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { withLab, type TestLab } from './testLab.ts';

const ONE = '/nodes/pve1/qemu';
const SEEDS = '/nodes/pve1/storage/proxy-seeds';
const LOCKED = "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout";
const ADMIN = { token: 'admin@pve!tok' };

const said = ({ status, reason }: { status: number; reason: string }): string =>
  `${status} ${reason}`;

/** Clones 9001 as 101, linked. */
const make101 = (lab: TestLab): Promise<string> =>
  lab.exit('POST', `${ONE}/9001/clone`, { newid: 101, name: 'one' });

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
