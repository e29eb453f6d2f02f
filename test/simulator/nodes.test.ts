import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { withLab, type TestLab } from './testLab.ts';

const ONE = '/nodes/pve1/qemu';
const TWO = '/nodes/pve2/qemu';
const ADMIN = { token: 'admin@pve!tok' };

const said = ({ status, reason }: { status: number; reason: string }): string =>
  `${status} ${reason}`;
const onTwo = (lab: TestLab): Promise<string> =>
  lab.exit('POST', `${ONE}/9002/clone`, { newid: 101, name: 'one', target: 'pve2' });

describe('a request for another node', () => {
  it('is answered there, and its errors come through unchanged', () =>
    withLab(async (lab) => {
      await onTwo(lab);
      assert.equal((await lab.config(101, 'pve2'))['name'], 'one');
      const asked = await lab.ask('GET', `${TWO}/101/config`, {}, { node: 'pve2' });
      assert.equal(asked.status, 200);
      const bad = await lab.ask('PUT', `${TWO}/101/config`, { cores: 'x' });
      assert.equal(said(bad), '400 Parameter verification failed.');
      const wrong = await lab.ask('GET', `${ONE}/101/config`);
      assert.equal(
        said(wrong),
        "500 Configuration file 'nodes/pve1/qemu-server/101.conf' does not exist",
      );
    }));

  it('under a name that nobody has is an error of name resolution', () =>
    withLab(async (lab) => {
      const answer = await lab.ask('GET', '/nodes/pve9/status');
      assert.match(said(answer), /^500 hostname lookup 'pve9' failed/);
    }));
});

describe('a dead node', () => {
  it('is offline after seven seconds, while its VMs look running for five minutes', () =>
    withLab(async (lab) => {
      await onTwo(lab);
      await lab.exit('POST', `${TWO}/101/status/start`);
      await lab.advance(12);
      lab.simulator.setNode('pve2', { state: 'dead' });
      const node = async (): Promise<string> =>
        /"node\/pve2"[^}]*"status":"(\w+)"/.exec(
          (await lab.ask('GET', '/cluster/resources', { type: 'node' })).body,
        )?.[1] ?? '';
      assert.equal(await node(), 'online');
      await lab.advance(7);
      assert.equal(await node(), 'offline');
      assert.equal((await lab.row(101))?.['status'], 'running');
      await lab.advance(270);
      assert.equal((await lab.row(101))?.['status'], 'running');
      await lab.advance(30);
      const row = await lab.row(101);
      assert.deepEqual([row?.['status'], row?.['name']], ['unknown', undefined]);
      assert.equal(said(await lab.ask('GET', `${TWO}/101/config`)), '595 No route to host');
    }));

  it('does not answer on its own port until it is up again', () =>
    withLab(async (lab) => {
      const version = async (node: string): Promise<number> =>
        (await lab.ask('GET', '/version', {}, { node })).status;
      assert.equal(await version('pve2'), 200);
      lab.simulator.setNode('pve2', { state: 'dead' });
      assert.equal(await version('pve2'), 0);
      assert.equal(await version('pve1'), 200);
      lab.simulator.setNode('pve2', { state: 'up' });
      await lab.advance(30);
      assert.equal(await version('pve2'), 200);
    }));

  it('ends its tasks without a word, and comes back with refused connections first', () =>
    withLab(async (lab) => {
      const slow = { newid: 101, full: 1, bwlimit: 256 };
      const clone = await lab.ask('POST', `${TWO}/9003/clone`, slow);
      await lab.advance(2);
      lab.simulator.setNode('pve2', { state: 'dead' });
      await lab.advance(20);
      lab.simulator.setNode('pve2', { state: 'up' });
      const early = await lab.ask('GET', `${TWO}/101/config`);
      assert.equal(said(early), '595 Connection refused');
      await lab.advance(30);
      assert.equal((await lab.config(101, 'pve2'))['lock'], 'clone');
      const path = `/nodes/pve2/tasks/${String(clone.data)}/status`;
      const status = await lab.ask('GET', path);
      assert.ok(status.body.includes('"exitstatus":"unexpected status"'), status.body);
    }));
});

describe('a node that is cut off', () => {
  it('refuses nothing but answers nothing, for thirty seconds', () =>
    withLab(async (lab) => {
      await onTwo(lab);
      lab.simulator.setNode('pve2', { state: 'cut' });
      const read = await lab.ask('GET', `${TWO}/101/config`);
      assert.equal(said(read), '595 Connection timed out');
      assert.ok(read.seconds >= 30 && read.seconds < 31, `${read.seconds} s`);
    }));

  it('loses the answer of a write that it has carried out', () =>
    withLab(async (lab) => {
      await onTwo(lab);
      lab.simulator.holdLock('/var/lock/qemu-server/lock-101.conf', 5, 'pve2');
      void lab.clock.sleep(1).then(() => {
        lab.simulator.setNode('pve2', { state: 'cut' });
      });
      const put = await lab.ask('PUT', `${TWO}/101/config`, { tags: 'written' });
      assert.equal(said(put), '596 Connection timed out');
      lab.simulator.setNode('pve2', { state: 'up' });
      assert.equal((await lab.config(101, 'pve2'))['tags'], 'written');
    }));
});

describe('a node without quorum', () => {
  it('reads and stops, but makes and writes nothing; what it sees of itself others do not', () =>
    withLab(async (lab) => {
      await onTwo(lab);
      await lab.exit('POST', `${TWO}/101/status/start`);
      await lab.advance(12);
      lab.simulator.setNode('pve2', { quorum: false });
      const clone = await lab.ask('POST', `${TWO}/9003/clone`, { newid: 102 });
      assert.equal(said(clone), '500 cluster not ready - no quorum?');
      const put = await lab.ask('PUT', `${TWO}/101/config`, { cores: 2 });
      assert.match(said(put), /^500 unable to open file .* - Permission denied$/);
      assert.equal(await lab.exit('POST', `${TWO}/101/status/stop`), 'OK');
      await lab.advance(12);
      assert.equal((await lab.row(101))?.['status'], 'running');
      assert.equal((await lab.row(101, { node: 'pve2' }))?.['status'], 'stopped');
      const status = await lab.ask('GET', '/cluster/status', {}, { node: 'pve2' });
      assert.ok(status.body.includes('"quorate":0'), status.body);
      lab.simulator.setNode('pve2', { quorum: true });
      await lab.advance(12);
      assert.equal((await lab.row(101))?.['status'], 'stopped');
    }));

  it('knows nothing of VMs that are made elsewhere meanwhile', () =>
    withLab(async (lab) => {
      lab.simulator.setNode('pve2', { quorum: false });
      await lab.exit('POST', `${ONE}/9001/clone`, { newid: 101 });
      assert.equal(await lab.row(101, { node: 'pve2' }), undefined);
      assert.equal((await lab.row(101))?.['node'], 'pve1');
    }));

  it('grows a disk and fails, so that a second try grows it again', () =>
    withLab(async (lab) => {
      await onTwo(lab);
      lab.simulator.setNode('pve2', { quorum: false });
      const grow = { disk: 'scsi0', size: '+16M' };
      assert.match(await lab.exit('PUT', `${TWO}/101/resize`, grow), /Permission denied$/);
      assert.match(await lab.exit('PUT', `${TWO}/101/resize`, grow), /Permission denied$/);
      const disk = lab.simulator.cluster.storages.volumes.find(({ vmid }) => vmid === 101);
      assert.equal(disk?.size, 96 * 1024 ** 2);
      assert.match(String((await lab.config(101, 'pve2'))['scsi0']), /size=64M$/);
    }));
});

describe('a migration', () => {
  it('is locked while it runs, and the VM is then on its target alone', () =>
    withLab(async (lab) => {
      await onTwo(lab);
      const refused = await lab.ask('POST', `${TWO}/101/migrate`, { target: 'pve1' });
      assert.equal(said(refused), '403 Permission check failed (/vms/101, VM.Migrate)');
      const moved = await lab.ask('POST', `${TWO}/101/migrate`, { target: 'pve1' }, ADMIN);
      assert.match(String(moved.data), /^UPID:pve2:.*:qmigrate:101:/);
      await lab.advance(0.5);
      assert.equal((await lab.row(101))?.['lock'], 'migrate');
      assert.equal(await lab.end(moved), 'OK');
      assert.equal((await lab.config(101))['lock'], undefined);
      assert.match((await lab.ask('GET', `${TWO}/101/config`)).reason, /does not exist$/);
    }));

  it('is aborted by a seed that only the old node has', () =>
    withLab(async (lab) => {
      await onTwo(lab);
      await lab.upload('proxy-seeds', 'seed-101.iso', { node: 'pve2' });
      const ide2 = 'proxy-seeds:iso/seed-101.iso,media=cdrom';
      await lab.ask('PUT', `${TWO}/101/config`, { ide2 });
      const moved = await lab.ask('POST', `${TWO}/101/migrate`, { target: 'pve1' }, ADMIN);
      assert.equal(await lab.end(moved), 'migration aborted');
      assert.ok(lab.log(moved).some((line) => line.includes('local cdrom image')));
    }));
});
