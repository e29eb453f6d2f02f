import type { StorageFixture } from '../fixture.ts';
import type { Lab } from './lab.ts';
import type { Session, Step } from './replay.ts';

const VM = '/nodes/pve1/qemu';
const SEED = 'proxy-seeds:iso/seed-101.iso,media=cdrom';

/** A set-up step; the text says what the captures' authors did between two exchanges. */
function setup(text: string, run: (lab: Lab) => Promise<void>): Step {
  return { setup: text, run };
}

const edit = (text: string, vmid: number, changes: Readonly<Record<string, string | null>>): Step =>
  setup(text, (lab) => {
    lab.simulator.editConfig(vmid, changes);
    return Promise.resolve();
  });

const put = (vmid: number, params: Readonly<Record<string, string | number>>): Step =>
  setup(`PUT config of ${vmid}`, async (lab) => {
    await lab.call('PUT', `${VM}/${vmid}/config`, params);
  });

const at = (time: string): Step =>
  setup(`until ${time}`, (lab) => lab.clock.advanceTo(Date.parse(`2026-11-29T${time}Z`)));

const power = (action: string, vmid: number): Step =>
  setup(`${action} ${vmid}`, async (lab) => {
    await lab.task('POST', `${VM}/${vmid}/status/${action}`);
  });

const clone = (newid: number, params: Readonly<Record<string, string | number>> = {}): Step =>
  setup(`clone ${newid}`, async (lab) => {
    await lab.task('POST', `${VM}/9001/clone`, { newid, ...params });
  });

const destroy = (vmid: number): Step =>
  setup(`destroy ${vmid}`, async (lab) => {
    await lab.task('DELETE', `${VM}/${vmid}`, { purge: 1 });
  });

const later: StorageFixture[] = [];

/** How root made the template; only `GET /cluster/tasks` still shows it. */
const historyOfTheTemplate: readonly Step[] = [
  setup('the template is made', async (lab) => {
    const types = `qmcreate qmstart! qmstart qmstop qmstart qmstop qmdestroy qmcreate qmtemplate
      qmdestroy qmcreate qmtemplate`.split(/\s+/);
    for (const type of types) {
      const spec = { node: 'pve1', type: type.replace('!', ''), id: '9001', authId: 'root@pam' };
      const upid = lab.simulator.core.tasks.start(spec, async () => {
        if (type.endsWith('!')) throw new Error('start failed: QEMU exited with code 1');
        await Promise.resolve();
      });
      await lab.ended(upid);
    }
  }),
];

const authentication: readonly Step[] = [
  '01-version-ok',
  '01-auth-no-token',
  { replay: '01-auth-wrong-secret', secret: '00000000-0000-4000-8000-00000000dead' },
  '01-auth-unknown-token-id',
  '01-auth-malformed-bearer',
  '01-auth-malformed-space-separator',
  '01-auth-malformed-no-bang',
  '01-auth-malformed-colon-separator',
  '01-auth-secret-not-uuid',
  '01-auth-secret-trailing-newline-blank',
  '01-auth-expired-token',
  '01-auth-lowercase-scheme',
];

const clones: readonly Step[] = [
  setup('only the first two storages exist', (lab) => {
    const { all } = lab.simulator.cluster.storages;
    later.push(...all.splice(2));
    return Promise.resolve();
  }),
  '02-cluster-resources-storage',
  setup('the other storages are added', (lab) => {
    lab.simulator.cluster.storages.all.push(...later.splice(0));
    return Promise.resolve();
  }),
  '02-node-status-wrong-node',
  '03-config-template',
  '04-clone-ok',
  '04-clone-task-status',
  '04-clone-task-log',
  '04-clone-description-empty',
  '04-clone-bad-params',
  at('13:25:10'),
  '02-node-storage-list',
  '02-node-status-unreachable-node',
  '03-config-unreachable-node',
  '03-config-normal-103',
  '04-clone-full-slow',
  setup('the worker has begun', (lab) => lab.advance(0.2)),
  '02-cluster-resources-vm-cloning-early',
  '02-qemu-list-cloning',
  '03-config-clone-locked',
  '07-status-current-clone-locked',
  '10-task-status-running',
  '10-task-log-running',
  '11-put-config-clone-locked',
  '11-post-config-clone-locked',
  '07-start-clone-locked',
  '06-resize-clone-locked',
  setup('destroy 110 while it is cloned', async (lab) => {
    const upid = await lab.call('DELETE', `${VM}/110`, { purge: 1 });
    lab.adopt(
      'UPID:pve1:00000459:0001C7A4:6B0C27BE:qmdestroy:110:proxy-operator@pve!operator:',
      String(upid),
    );
  }),
  '11-clone-same-newid-while-cloning',
  '02-cluster-resources-vm-cloning',
  setup('until the clone has ended', async (lab) => {
    const clone110 = lab.upids.get(
      'UPID:pve1:00000430:0001C758:6B0C27BD:qmclone:9001:proxy-operator@pve!operator:',
    );
    await lab.ended(clone110 ?? '');
  }),
  '02-cluster-resources-vm-after-clone',
  '03-config-full-clone',
  '10-task-log-full-clone',
  '10-task-list-errors',
];

const uploads: readonly Step[] = [
  '08-upload-ok',
  '08-upload-overwrite',
  '08-upload-checksum-ok',
  '08-upload-checksum-before-algorithm',
  setup('an image with the other extension, and the seed whose checksum was right', async (lab) => {
    await lab.upload('proxy-seeds', 'seed.img');
  }),
  '08-upload-uppercase-iso',
  '08-upload-filename-normalized',
  '08-upload-no-privilege',
  setup('a seed to delete', async (lab) => {
    await lab.upload('proxy-seeds', 'seed-q.iso');
  }),
  '08-upload-content-in-query',
  '08-content-list-all',
  '08-content-list-iso',
  '08-content-list-only-audit-no-allocate',
  '08-content-list-local-images',
  '08-delete-with-delay',
  '08-delete-no-allocate',
  '08-delete-with-body',
  '08-delete-unescaped-slash',
  setup('two seeds removed', async (lab) => {
    for (const name of ['seed-noct.iso', 'seed-sum.iso']) {
      await lab.task('DELETE', `/nodes/pve1/storage/proxy-seeds/content/proxy-seeds:iso/${name}`);
    }
  }),
];

const configs: readonly Step[] = [
  put(101, {
    cores: 2,
    memory: 512,
    agent: 1,
    tags: 'managed-by-operator;egress',
    ide2: SEED,
    net0: 'virtio,bridge=vmbr0',
  }),
  '05-config-after-put',
  setup('POST config of 101', async (lab) => {
    await lab.task('POST', `${VM}/101/config`, { cores: 2, net0: 'virtio,bridge=vmbr0' });
  }),
  '05-config-after-post',
  '05-config-put-noop',
  '05-config-unknown-param',
  '05-config-bad-cores',
  '05-config-bad-memory',
  '05-config-net0-bad-key',
  '05-config-bad-bridge-syntax',
  '05-config-bad-bridge-nonexistent',
  put(101, { net0: 'virtio,bridge=vmbr0' }),
  '05-config-net0-no-bridge',
  '05-config-net0-fixed-mac',
  '05-config-net0-bad-mac',
  '05-config-net0-vlan-bad',
  '05-config-net0-no-sdn-use',
  '05-config-iso-missing',
  '05-config-iso-missing-storage',
  '05-config-iso-storage-disabled',
  '05-config-iso-storage-no-privilege',
  '05-config-iso-without-media',
  '05-config-iso-none',
  '05-config-delete-ide2',
  '05-config-delete-and-set',
  '05-config-tags-bad',
  '05-config-tags-uppercase-dup',
  '05-config-103-after-tags',
  '05-config-description-leading-blank',
  put(103, { description: 'a\nb\n\n' }),
  '05-config-description-trailing-newline-read',
  put(103, { description: '#a\n# b' }),
  '05-config-description-hash-read',
  '05-config-description-crlf',
  '05-config-description-crlf-read',
  '05-config-description-percent',
  '05-config-description-unicode',
  '05-config-description-unicode-read',
  '05-config-description-long-read',
  '05-config-name-bad',
  '05-config-no-privilege',
  '05-config-missing-vmid',
  '05-config-on-template',
  '05-config-root-only-args',
  '05-config-serial-device',
  '05-config-kvm',
  '05-config-cicustom-no-priv',
  '05-config-json-body',
  put(103, { onboot: 1, cpu: 'host', agent: 'enabled=1,fstrim_cloned_disks=0' }),
  '05-config-103-final',
  '05-config-pending',
  setup('101 grows to 128M', async (lab) => {
    await lab.task('PUT', `${VM}/101/resize`, { disk: 'scsi0', size: '128M' });
  }),
  '06-resize-grow-relative',
  '06-resize-same-size',
  '06-resize-shrink',
  '06-resize-no-such-disk',
  '06-resize-cdrom',
  '06-resize-fractional',
  '06-resize-bytes',
  '06-resize-missing-vm',
];

const running: readonly Step[] = [
  '07-status-current-stopped',
  '07-stop-on-stopped',
  '07-start-ok',
  '09-agent-guest-booting',
  '02-cluster-resources-vm-running-just-started',
  '07-start-missing',
  '07-stop-missing',
  '03-config-running',
  '09-agent-ok',
  '09-agent-get-osinfo',
  '07-status-current-running',
  '09-agent-info',
  '05-config-put-running-hotplug',
  '05-config-running-after-put',
  '05-config-running-current-1',
  '05-config-running-pending',
  '05-config-put-running-ide2',
  '05-config-put-running-net0',
  '02-cluster-resources-vm-running',
  at('13:29:43'),
  power('stop', 101),
  '02-cluster-resources-vm-just-stopped',
  '07-status-current-just-stopped',
  '05-pending-after-stop',
  at('13:30:25'),
  put(103, { delete: 'agent' }),
  power('start', 103),
  '09-agent-not-configured',
  '07-shutdown-ok-or-timeout',
  '07-shutdown-forcestop',
  put(103, { agent: 1 }),
  at('13:31:10'),
  destroy(101),
  clone(101, { name: 'egress-a', description: 'a' }),
  put(101, { tags: 'egress', ide2: SEED }),
  at('13:31:19'),
  power('start', 101),
  '06-resize-running',
  power('suspend', 101),
  '07-status-current-paused',
  '02-qemu-list-paused',
  '02-qemu-list-full-paused',
  '09-agent-paused',
  '07-start-on-paused',
  '07-shutdown-on-paused',
  '07-status-current-after-shutdown-on-paused',
  '07-resume',
  '07-suspend-pause-2',
  '07-stop-on-paused',
  '07-status-current-after-stop-on-paused',
  at('13:31:59'),
  '07-start-3',
  '07-race-stop',
  '07-race-start-right-after-stop',
  '07-race-put-config-after-restart',
  '07-race-stop-again',
];

const lockedRunning = (lock: string): Step => edit(`lock ${lock} by hand`, 101, { lock });
const locked = (lock: string): readonly Step[] => [
  edit(`lock ${lock} by hand`, 103, { lock }),
  ...(lock === 'migrate' ? ['07-status-current-lock-migrate'] : []),
  `07-start-lock-${lock}`,
  `07-stop-lock-${lock}`,
  `07-shutdown-lock-${lock}`,
  `04-clone-source-lock-${lock}`,
  `05-config-put-lock-${lock}`,
  `06-resize-lock-${lock}`,
  `07-destroy-lock-${lock}`,
];

const locks: readonly Step[] = [
  at('13:33:20'),
  power('stop', 101),
  at('13:33:33'),
  power('start', 101),
  ...locked('backup'),
  ...locked('migrate'),
  ...locked('create'),
  edit('unlocked by hand', 103, { lock: null }),
  '07-start-skiplock-not-root',
  put(103, { protection: 1 }),
  '07-destroy-protected',
  put(103, { protection: 0 }),
  lockedRunning('suspending'),
  at('13:34:32'),
  '02-cluster-resources-vm-lock-suspending',
  '07-stop-running-lock-suspending',
  lockedRunning('backup'),
  '07-shutdown-running-lock-backup',
  '07-suspend-running-lock-backup',
  edit('unlocked by hand', 101, { lock: null }),
  power('stop', 101),
  at('13:34:42'),
  put(101, { cores: 2 }),
  setup('101 grows to 400M', async (lab) => {
    await lab.task('PUT', `${VM}/101/resize`, { disk: 'scsi0', size: '400M' });
  }),
  power('start', 101),
  '07-destroy-template-in-use',
  '07-destroy-wrong-param',
  setup('destroy 103, whose disk cannot be removed', async (lab) => {
    for (const volume of lab.simulator.cluster.storages.volumes) {
      if (volume.vmid === 103) volume.stuck = true;
    }
    await lab.task('DELETE', `${VM}/103`, { purge: 1, 'destroy-unreferenced-disks': 1 });
    for (const volume of lab.simulator.cluster.storages.volumes) volume.stuck = false;
  }),
  '07-status-current-after-destroy-with-warning',
  '04-clone-onto-leftover-disk',
  '03-config-after-clone-onto-leftover',
  '07-destroy-ok',
];

const suspended: readonly Step[] = [
  '07-stop-4',
  edit('suspended by hand', 101, {
    lock: 'suspended',
    vmstate: 'local:101/vm-101-state-suspend-2026-11-29.raw',
  }),
  '02-cluster-resources-vm-suspended',
  '03-config-suspended',
  '05-config-put-suspended',
  '06-resize-suspended',
  '07-stop-suspended',
  '07-shutdown-suspended',
  '04-clone-of-suspended-source',
  '07-resume-suspended',
  '07-start-suspended',
  '03-config-suspended-after-failed-start',
  '07-destroy-suspended',
  '07-status-current-after-destroy-suspended',
  '02-cluster-resources-vm-after-destroy',
];

const races: readonly Step[] = [
  { replay: '11-race-clone-same-newid-0', lastFirst: true },
  '11-race-clone-same-newid-1',
  '11-race-clone-same-newid-full',
  '11-race-clone-different-newids',
  '11-race-destroy-twice',
  '11-race-destroy-and-config',
  power('start', 152),
  at('13:36:05'),
  '11-race-stop-twice',
  { replay: '11-race-start-and-destroy', lastFirst: true },
  '11-race-config-put-twice',
  setup('a linked clone is on its way', async (lab) => {
    await lab.call('POST', `${VM}/9001/clone`, { newid: 160, name: 'right-after' });
    await lab.advance(0.1);
  }),
  '11-config-put-right-after-linked-clone-post',
  at('13:36:13'),
  setup('a slow clone to stop', async (lab) => {
    const upid = await lab.call('POST', `${VM}/9001/clone`, { newid: 161, full: 1, bwlimit: 1024 });
    lab.adopt(
      'UPID:pve1:0000115C:0002C757:6B0C2A4C:qmclone:9001:proxy-operator@pve!operator:',
      String(upid),
    );
    await lab.advance(0.5);
  }),
  '11-task-stop',
  '11-task-stop-status',
  '11-task-stop-log',
  '11-task-stop-config-after',
  setup('a slow clone whose worker is killed', async (lab) => {
    const upid = await lab.call('POST', `${VM}/9001/clone`, { newid: 162, full: 1, bwlimit: 1024 });
    lab.adopt(
      'UPID:pve1:0000117C:0002C83D:6B0C2A4E:qmclone:9001:proxy-operator@pve!operator:',
      String(upid),
    );
    await lab.advance(1);
    lab.simulator.killTask(String(upid));
  }),
  '11-task-worker-killed-status',
  '11-task-worker-killed-log',
  '11-clone-killed-config',
  '11-clone-killed-destroy',
  '11-clone-killed-clone-again',
  edit('qm unlock 162', 162, { lock: null }),
  '11-clone-killed-destroy-after-unlock',
  ...[130, 131, 140, 160].map(destroy),
];

const transport: readonly Step[] = [
  '12-raw-get-version',
  '12-json-charset',
  put(110, { onboot: 1 }),
  '12-json-charset-read',
  '12-raw-form-too-large',
  '12-raw-query-and-body',
  put(110, { cores: 1, memory: 256 }),
];

const inheritance: readonly Step[] = [
  edit('a protected and tagged template', 9001, {
    protection: '1',
    tags: 'template-tag',
    onboot: '1',
  }),
  '13-clone-of-protected-tagged-template',
  '13-destroy-clone-of-protected-template',
  put(170, { protection: 0 }),
  '13-destroy-after-unset-protection',
  edit('the template as before', 9001, { protection: null, tags: null, onboot: null }),
  '13-name-63',
  '13-name-dots',
  '13-name-leading-dash',
  '13-name-upper',
  put(110, { name: '123' }),
  '13-clone-description-too-long',
  '13-config-put-after-long-description',
  put(171, { ide2: SEED }),
  power('start', 171),
  '13-delete-iso-attached-to-running-vm',
  '13-status-running-with-deleted-iso',
  power('stop', 171),
  '13-start-with-missing-iso',
  '13-put-config-other-key-with-missing-iso',
  '13-clone-from-vm-with-missing-iso',
  '13-destroy-with-missing-iso',
  '13-destroy-172',
  '13-task-log-beyond',
  setup('a seed uploaded with pauses', async (lab) => {
    await lab.upload('proxy-seeds', 'slow.iso');
  }),
];

const daemons: readonly Step[] = [
  at('13:39:28'),
  clone(180, { name: 'vm180' }),
  clone(181, { name: 'vm181' }),
  power('start', 180),
  setup('no quorum', (lab) => {
    lab.simulator.setNode('pve1', { quorum: false });
    return Promise.resolve();
  }),
  '14-noquorum-version',
  '14-noquorum-config-read',
  '14-noquorum-clone',
  '14-noquorum-config-put',
  '14-noquorum-config-post',
  '14-noquorum-resize',
  '14-noquorum-start',
  '14-noquorum-content',
  '14-noquorum-delete-content',
  '14-noquorum-upload',
  setup('quorum again, pmxcfs down', (lab) => {
    lab.simulator.setNode('pve1', { quorum: true, pmxcfs: false });
    return Promise.resolve();
  }),
  '14-pmxcfs-down-resources',
  '14-pmxcfs-down-config-read',
  setup('pmxcfs back; the lock of 181 held by another process', async (lab) => {
    lab.simulator.setNode('pve1', { pmxcfs: true });
    await lab.advance(1);
    const holder = { log: (): void => undefined };
    void lab.simulator.core
      .locks('pve1')
      .withLock(
        { path: '/var/lock/qemu-server/lock-181.conf', timeoutSeconds: 1, owner: holder },
        () => lab.clock.sleep(70),
      );
  }),
  '14-config-put-lock-timeout',
  setup('pve2 refuses connections', (lab) => {
    lab.simulator.setNode('pve2', { state: 'refusing' });
    return Promise.resolve();
  }),
  '14-other-node-refused',
  at('13:41:25'),
  power('stop', 180),
  destroy(180),
  destroy(181),
  clone(184),
  at('13:41:29'),
  destroy(184),
  setup('pvedaemon down', (lab) => {
    lab.simulator.setNode('pve2', { state: 'absent' });
    lab.simulator.setNode('pve1', { pvedaemon: false });
    return Promise.resolve();
  }),
  '14-pvedaemon-down-version',
  '14-pvedaemon-down-config-read',
  '14-pvedaemon-down-upload',
  setup('pvedaemon back', (lab) => {
    lab.simulator.setNode('pve1', { pvedaemon: true });
    return Promise.resolve();
  }),
];

/** A client program on Node's fetch, and workers of pvedaemon that wait for a lock. */
const clients: readonly Step[] = [
  at('13:44:00'),
  '15-node-fetch',
  '15-node-fetch-upload-denied-sizes',
  setup('the images of the client are there, the large one is not', async (lab) => {
    await lab.task('DELETE', '/nodes/pve1/storage/proxy-seeds/content/iso/big.iso');
  }),
];

const leftovers: readonly Step[] = [
  setup('a container, a VM of the other node, a storage without room', async (lab) => {
    await lab.clock.advanceTo(Date.parse('2026-11-29T13:45:38Z'));
    const { simulator } = lab;
    simulator.addGuest({ vmid: 190, type: 'lxc', node: 'pve1', config: { hostname: 'ct' } });
    simulator.addGuest({ vmid: 191, type: 'qemu', node: 'pve2', config: { name: 'elsewhere' } });
    simulator.cluster.storages.all.push({
      id: 'tiny',
      type: 'dir',
      content: ['iso'],
      disabled: false,
      shared: false,
      mounted: true,
      totalBytes: 200_000,
      usedBytes: 100_000,
      availBytes: 100_000,
      isos: [],
    });
  }),
  '16-clone-newid-is-container',
  '16-config-of-vm-on-other-node',
  '16-status-of-vm-on-other-node',
  '16-config-put-of-vm-on-other-node',
  '16-nextid-taken-by-container',
  '16-nextid-taken-by-other-node',
  setup('leftover of an interrupted destroy', (lab) => {
    lab.simulator.removeVm(190);
    lab.simulator.removeVm(191);
    lab.simulator.addGuest({
      vmid: 192,
      type: 'qemu',
      node: 'pve1',
      config: { lock: 'destroyed' },
    });
    return Promise.resolve();
  }),
  '16-destroyed-lock-config',
  '16-destroyed-lock-resources',
  '16-upload-storage-full',
  '16-content-after-upload-storage-full',
  setup('only 110 and the template are left', (lab) => {
    lab.simulator.removeVm(192);
    const privileges = lab.simulator.core.access.roles.get('PVEVMUser') ?? [];
    lab.simulator.core.access.grant('/vms', 'proxy-operator@pve!privsep', privileges);
    return Promise.resolve();
  }),
  '16-privsep-permissions',
  clone(101, { name: 'egress-a' }),
  '16-resources-right-after-clone-ok',
  put(101, { tags: 'egress;owner-x' }),
  '16-resources-right-after-tags',
  '16-qemu-list-right-after-clone-ok',
  setup('the guest is up', async (lab) => {
    await lab.task('POST', `${VM}/101/status/start`);
  }),
  at('13:45:58'),
  '16-shutdown-by-agent-ok',
  at('13:46:04'),
  power('start', 101),
  setup('kill -9 of QEMU', (lab) => {
    lab.simulator.powerOffVm(101);
    return Promise.resolve();
  }),
  '16-status-after-qemu-killed',
  '16-agent-after-qemu-killed',
  at('13:46:09'),
  '16-start-after-qemu-killed',
  setup('kill -STOP of QEMU', (lab) => {
    const { running: process } = lab.simulator.cluster.vms.get(101) ?? {};
    if (process !== null && process !== undefined) process.frozen = true;
    return Promise.resolve();
  }),
  '16-agent-qemu-frozen',
  '16-stop-qemu-frozen',
  '16-destroy-101',
];

const wholeLife: readonly Step[] = [
  '18-workers-blocked',
  setup('more images on the seed storage', async (lab) => {
    await lab.upload('proxy-seeds', 'pd.iso');
    await lab.upload('proxy-seeds', 'big.iso', { size: 41_943_040 });
  }),
  at('13:47:54'),
  '17-lifecycle',
  '19-shutdown-missing',
  '19-own-task-start-without-sys-audit',
  '19-own-task-status-without-sys-audit',
  '19-own-task-log-without-sys-audit',
  '19-other-tokens-task-of-same-user',
  setup('a task of the operator token', async (lab) => {
    const upid = await lab.task('POST', `${VM}/9099/status/stop`);
    lab.adopt(
      'UPID:pve1:00000E83:000448E7:6B0C2E27:qmstop:9099:proxy-operator@pve!operator:',
      upid,
    );
  }),
  '19-same-user-other-token-task-status',
  '19-task-stop-finished',
];

const taskLists: readonly Step[] = [
  setup('two destroys of 150 at once, long ago', async (lab) => {
    await lab.task('POST', `${VM}/9001/clone`, { newid: 150 });
    const first = await lab.call('DELETE', `${VM}/150`, { purge: 1 });
    const second = await lab.call('DELETE', `${VM}/150`, { purge: 1 });
    await lab.ended(String(first));
    await lab.ended(String(second));
  }),
  setup('failures and other people’s tasks', async (lab) => {
    const { tasks } = lab.simulator.core;
    await lab.task('POST', `${VM}/9001/clone`, { newid: 104 });
    const killed = String(await lab.call('DELETE', `${VM}/104`, { purge: 1 }));
    lab.simulator.killTask(killed);
    lab.simulator.removeVm(104);
    lab.simulator.faults.push({
      path: '/clone$',
      action: { kind: 'task', fail: 'unable to create VM 101: config file already exists' },
    });
    await lab.task('POST', `${VM}/9001/clone`, { newid: 101 });
    for (const newid of [100, 102]) await lab.task('POST', `${VM}/9001/clone`, { newid });
    await lab.task('DELETE', `${VM}/102`, { purge: 1 });
    await lab.task('DELETE', `${VM}/100`, { purge: 1 });
    const spec = { node: 'pve1', type: 'qmdestroy', id: '9002', authId: 'root@pam' };
    await lab.ended(tasks.start(spec, () => Promise.resolve()));
  }),
  at('14:43:24'),
  '20-clone-throttled',
  at('14:43:27'),
  '20-tasks-active-qmclone',
  '20-tasks-active',
  '20-tasks-active-nosys',
  '20-tasks-all-vmid-template',
  '20-tasks-all-vmid-newid',
  '20-task-log-clone-running',
  '20-config-while-cloning',
  '20-resources-while-cloning',
  '20-clone-same-template-in-parallel',
  '20-config-put-template-while-cloning',
  '20-task-stop-clone',
  '20-task-status-after-stop',
  '20-config-after-stop',
  '20-config-second',
  '20-put-with-digest-wrong',
  '20-put-delete-protection-unset',
  '20-config-second-after-put',
  '20-put-vlan-net0',
  '20-agent-on-stopped',
  '20-destroy-purge',
  '20-destroy-task-status',
  '20-destroy-task-log',
  '20-resources-after-destroy',
  '20-tasks-qmdestroy-recent',
];

/** The one-node captures in the order of their time stamps, with what happened between them. */
export const oneNodeSessions: readonly Session[] = [
  {
    title: 'one node, the first half hour',
    fixture: 'fixture.yaml',
    // Rounds of pvestatd came at :08, :18, … in these captures.
    start: '2026-11-29T13:23:18Z',
    steps: [
      ...historyOfTheTemplate,
      ...authentication,
      ...clones,
      ...uploads,
      ...configs,
      ...running,
      ...locks,
      ...suspended,
      ...races,
      ...transport,
      ...inheritance,
      ...daemons,
      ...clients,
      ...leftovers,
      ...wholeLife,
    ],
  },
  {
    title: 'one node, task lists while cloning',
    fixture: 'fixture.yaml',
    start: '2026-11-29T14:40:06Z',
    steps: taskLists,
  },
];
