import { VM, SEED, setup, edit, put, at, power, clone, destroy } from './oneNodeSteps.ts';
import type { Step } from './replay.ts';

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

/** Captures about locks, and what happened between them. */
export const locks: readonly Step[] = [
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

/** Captures about suspended, and what happened between them. */
export const suspended: readonly Step[] = [
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

/** Captures about races, and what happened between them. */
export const races: readonly Step[] = [
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

/** Captures about transport, and what happened between them. */
export const transport: readonly Step[] = [
  '12-raw-get-version',
  '12-json-charset',
  put(110, { onboot: 1 }),
  '12-json-charset-read',
  '12-raw-form-too-large',
  '12-raw-query-and-body',
  put(110, { cores: 1, memory: 256 }),
];

/** Captures about inheritance, and what happened between them. */
export const inheritance: readonly Step[] = [
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

/** Captures about daemons, and what happened between them. */
export const daemons: readonly Step[] = [
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
export const clients: readonly Step[] = [
  at('13:44:00'),
  '15-node-fetch',
  '15-node-fetch-upload-denied-sizes',
  setup('the images of the client are there, the large one is not', async (lab) => {
    await lab.task('DELETE', '/nodes/pve1/storage/proxy-seeds/content/iso/big.iso');
  }),
];

/** Captures about leftovers, and what happened between them. */
export const leftovers: readonly Step[] = [
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

/** Captures about whole life, and what happened between them. */
export const wholeLife: readonly Step[] = [
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

/** Captures about task lists, and what happened between them. */
export const taskLists: readonly Step[] = [
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
