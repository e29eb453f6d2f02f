import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { baseFixture, withLab } from './testLab.ts';

const VM = '/nodes/pve1/qemu';
const { storages } = baseFixture();

/** Exchanges that are in no capture, thought up from the facts alone; each title ends with the facts it rests on. */
describe('exchanges thought up from the facts', () => {
  it('a stop during a shutdown waits for its lock in vain, unless it overrules it (api-facts 5.16, §9.44)', () =>
    withLab(async (lab) => {
      await lab.exit('POST', `${VM}/9001/clone`, { newid: 101 });
      await lab.exit('POST', `${VM}/101/status/start`);
      const shutdown = await lab.ask('POST', `${VM}/101/status/shutdown`, { timeout: 50 });
      await lab.advance(1);
      const stop = await lab.ask('POST', `${VM}/101/status/stop`);
      assert.equal(
        await lab.end(stop),
        "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout",
      );
      assert.deepEqual(lab.log(stop)[0], 'trying to acquire lock...');
      assert.equal(
        await lab.exit('POST', `${VM}/101/status/stop`, { 'overrule-shutdown': 1 }),
        'OK',
      );
      assert.match(await lab.end(shutdown), /interrupt/);
      const { data } = await lab.ask('GET', `${VM}/101/status/current`);
      assert.ok(JSON.stringify(data).includes('"status":"stopped"'));
    }));

  it('a hibernated VM refuses every write but the removal of its state, which unlocks it (api-facts 3, §9.41)', () =>
    withLab(async (lab) => {
      await lab.exit('POST', `${VM}/9001/clone`, { newid: 101 });
      await lab.exit('POST', `${VM}/101/status/start`);
      const suspend = await lab.ask('POST', `${VM}/101/status/suspend`, { todisk: 1 });
      await lab.advance(1);
      assert.equal((await lab.config(101))['lock'], 'suspending');
      assert.equal(await lab.end(suspend), 'OK');
      const refused = await lab.ask('PUT', `${VM}/101/config`, { cores: 2 });
      assert.equal(`${refused.status} ${refused.reason}`, '500 VM is locked (suspended)');
      const removed = await lab.ask('PUT', `${VM}/101/config`, { delete: 'vmstate' });
      assert.equal(`${removed.status} ${removed.reason}`, '200 OK');
      const config = await lab.config(101);
      assert.deepEqual([config['lock'], config['vmstate']], [undefined, undefined]);
      assert.equal((await lab.ask('PUT', `${VM}/101/config`, { cores: 2 })).status, 200);
    }));

  it('a hibernated VM resumes with its old memory and is unlocked by its start (api-facts 5.15, 5.18)', () =>
    withLab(async (lab) => {
      await lab.exit('POST', `${VM}/9001/clone`, { newid: 101 });
      await lab.exit('POST', `${VM}/101/status/start`);
      await lab.exit('POST', `${VM}/101/status/suspend`, { todisk: 1 });
      const start = await lab.ask('POST', `${VM}/101/status/start`);
      assert.equal(await lab.end(start), 'OK');
      assert.equal(lab.log(start)[0], 'Resuming suspended VM');
      const config = await lab.config(101);
      assert.deepEqual([config['lock'], config['vmstate']], [undefined, undefined]);
    }));

  it('a clone of a snapshot that does not exist is refused at once (api-facts 5.13)', () =>
    withLab(async (lab) => {
      const answer = await lab.ask('POST', `${VM}/9001/clone`, { newid: 101, snapname: 'before' });
      assert.equal(`${answer.status} ${answer.reason}`, "500 snapshot 'before' does not exist");
      assert.equal((await lab.ask('GET', '/cluster/nextid', { vmid: 101 })).status, 200);
    }));

  it('a VM becomes a template once, not while it runs, and then makes linked clones (api-facts 5.24, 5.13)', () =>
    withLab(async (lab) => {
      await lab.exit('POST', `${VM}/9001/clone`, { newid: 101, full: 1 });
      await lab.exit('POST', `${VM}/101/status/start`);
      const running = await lab.ask('POST', `${VM}/101/template`);
      assert.equal(
        `${running.status} ${running.reason}`,
        "500 you can't convert a VM to template if VM is running",
      );
      await lab.exit('POST', `${VM}/101/status/stop`);
      const made = await lab.ask('POST', `${VM}/101/template`);
      assert.equal(await lab.end(made), 'OK');
      assert.match(String(made.data), /:qmtemplate:101:/);
      const config = await lab.config(101);
      assert.equal(config['template'], 1);
      assert.equal(config['scsi0'], 'local:101/base-101-disk-0.qcow2,size=64M');
      const again = await lab.ask('POST', `${VM}/101/template`);
      assert.equal(
        `${again.status} ${again.reason}`,
        "500 you can't convert a template to a template",
      );
      assert.equal(await lab.exit('POST', `${VM}/101/clone`, { newid: 102 }), 'OK');
      assert.equal(
        (await lab.config(102))['scsi0'],
        'local:101/base-101-disk-0.qcow2/102/vm-102-disk-0.qcow2,size=64M',
      );
      assert.match(await lab.exit('DELETE', `${VM}/101`), /still in use by linked cloned$/);
    }));

  it('an absolute size that LVM rounded up looks like shrinking the second time (api-facts 5.14, §9.23)', () =>
    withLab(
      async (lab) => {
        await lab.exit('POST', `${VM}/9001/clone`, { newid: 101, full: 1, storage: 'thin' });
        const resize = { disk: 'scsi0', size: '101M' };
        assert.equal(await lab.exit('PUT', `${VM}/101/resize`, resize), 'OK');
        assert.match(String((await lab.config(101))['scsi0']), /size=101M$/);
        assert.equal(
          await lab.exit('PUT', `${VM}/101/resize`, resize),
          'shrinking disks is not supported',
        );
        const whole = { disk: 'scsi0', size: '1G' };
        assert.equal(await lab.exit('PUT', `${VM}/101/resize`, whole), 'OK');
        assert.equal(await lab.exit('PUT', `${VM}/101/resize`, whole), 'OK');
      },
      {
        fixture: { storages: [...storages, { id: 'thin', type: 'lvmthin', content: ['images'] }] },
      },
    ));

  it('resume of a stopped VM fails at once, of a template as well (api-facts 5.19)', () =>
    withLab(async (lab) => {
      await lab.exit('POST', `${VM}/9001/clone`, { newid: 101 });
      const stopped = await lab.ask('POST', `${VM}/101/status/resume`);
      assert.equal(`${stopped.status} ${stopped.reason}`, '500 VM 101 not running');
      const template = await lab.ask('POST', `${VM}/9001/status/resume`);
      assert.equal(
        `${template.status} ${template.reason}`,
        '500 VM 9001 is a template and cannot be resumed!',
      );
      const paused = await lab.ask('POST', `${VM}/101/status/suspend`);
      assert.equal(`${paused.status} ${paused.reason}`, '500 VM 101 not running');
    }));

  it('a boot order names only devices there are, and a deleted device leaves it (api-facts 5.12)', () =>
    withLab(async (lab) => {
      await lab.exit('POST', `${VM}/9001/clone`, { newid: 101 });
      const bad = await lab.ask('PUT', `${VM}/101/config`, { boot: 'order=scsi0;sata3' });
      assert.equal(bad.status, 500);
      assert.match(bad.reason, /^invalid bootorder: device 'sata3' does not exist'/);
      assert.equal((await lab.config(101))['boot'], 'order=scsi0');
      const put = { boot: 'order=scsi0;net0' };
      assert.equal((await lab.ask('PUT', `${VM}/101/config`, put)).status, 200);
      await lab.ask('PUT', `${VM}/101/config`, { delete: 'net0' });
      assert.equal((await lab.config(101))['boot'], 'order=scsi0');
    }));

  it('a write that fails half-way leaves the first half pending, for revert or the next start (api-facts 5.12, §9.12)', () =>
    withLab(async (lab) => {
      await lab.exit('POST', `${VM}/9001/clone`, { newid: 101 });
      const half = { cores: 4, ide2: 'proxy-seeds:iso/never.iso,media=cdrom' };
      const failed = await lab.ask('PUT', `${VM}/101/config`, half);
      assert.equal(failed.reason, "volume 'proxy-seeds:iso/never.iso' does not exist");
      const pending = await lab.ask('GET', `${VM}/101/pending`);
      assert.ok(pending.body.includes('"pending":4'), pending.body);
      assert.equal(
        (await lab.ask('GET', `${VM}/101/config`, { current: 1 })).body.includes('"cores":1'),
        true,
      );
      await lab.ask('PUT', `${VM}/101/config`, { revert: 'cores' });
      assert.equal((await lab.config(101))['cores'], 1);
      await lab.ask('PUT', `${VM}/101/config`, half);
      await lab.exit('POST', `${VM}/101/status/start`);
      assert.equal(
        (await lab.ask('GET', `${VM}/101/config`, { current: 1 })).body.includes('"cores":4'),
        true,
      );
    }));

  it('a raw semicolon in a form ends the parameter, so a boot order is torn apart (api-facts 1.5, §9.35)', () =>
    withLab(async (lab) => {
      await lab.exit('POST', `${VM}/9001/clone`, { newid: 101 });
      const torn = await lab.ask(
        'PUT',
        `${VM}/101/config`,
        {},
        {
          request: {
            rawBody: 'boot=order=scsi0;net0',
            headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
          },
        },
      );
      assert.equal(torn.status, 400);
      assert.ok(torn.body.includes('"boot":'), torn.body);
      assert.equal((await lab.config(101))['boot'], 'order=scsi0');
    }));

  it('a balloon larger than the memory and a second value for the VMID are refused (api-facts 5.12, 1.1.9)', () =>
    withLab(async (lab) => {
      await lab.exit('POST', `${VM}/9001/clone`, { newid: 101 });
      const balloon = await lab.ask('PUT', `${VM}/101/config`, { memory: 512, balloon: 1024 });
      assert.equal(balloon.status, 500);
      assert.match(balloon.reason, /^balloon value too large/);
      const twice = await lab.ask('PUT', `${VM}/101/config`, { vmid: 102, cores: 2 });
      assert.deepEqual(
        [twice.status, twice.errors],
        [400, { vmid: 'duplicate parameter (already defined in URI) with conflicting values!' }],
      );
    }));

  it('a task is stopped by its owner alone; the token next to it needs Sys.Modify (api-facts 2.4)', () =>
    withLab(async (lab) => {
      const slow = { newid: 101, full: 1, bwlimit: 512 };
      const clone = await lab.ask('POST', `${VM}/9001/clone`, slow);
      await lab.advance(1);
      const path = `/nodes/pve1/tasks/${String(clone.data)}`;
      const refused = await lab.ask('DELETE', path, {}, { token: 'nosys@pve!tok' });
      assert.equal(
        `${refused.status} ${refused.reason}`,
        '403 Permission check failed (/nodes/pve1, Sys.Modify)',
      );
      assert.equal((await lab.ask('DELETE', path)).body, '{"data":null}');
      assert.match(await lab.end(clone), /interrupt/);
      assert.equal((await lab.ask('DELETE', path)).body, '{"data":null}');
      const gone = await lab.ask('GET', `${VM}/101/config`);
      assert.match(gone.reason, /101\.conf' does not exist$/);
    }));

  it('HA-managed VMs are neither hibernated nor overruled (api-facts 5.16, 5.18, 6)', () =>
    withLab(async (lab) => {
      const admin = { token: 'admin@pve!tok' };
      await lab.exit('POST', `${VM}/9002/clone`, { newid: 101 });
      await lab.ask('POST', '/cluster/ha/resources', { sid: 'vm:101', state: 'started' }, admin);
      await lab.advance(30);
      const hibernate = await lab.ask('POST', `${VM}/101/status/suspend`, { todisk: 1 });
      assert.equal(hibernate.reason, 'Cannot suspend HA managed VM to disk');
      assert.equal(await lab.exit('POST', `${VM}/101/status/suspend`), 'OK');
      const overrule = await lab.ask('POST', `${VM}/101/status/stop`, { 'overrule-shutdown': 1 });
      assert.deepEqual(
        [overrule.status, overrule.errors],
        [400, { 'overrule-shutdown': 'Not applicable for HA resources.' }],
      );
    }));
});
