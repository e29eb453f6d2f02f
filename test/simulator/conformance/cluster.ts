import type { Lab } from './lab.ts';
import type { Session, Step } from './replay.ts';

const ONE = '/nodes/pve1/qemu';
const TWO = '/nodes/pve2/qemu';
const ADMIN = { token: 'admin@pve!tok' };
const DESCRIPTION = 'managed-by: egress-operator';

function setup(text: string, run: (lab: Lab) => Promise<unknown>): Step {
  return {
    setup: text,
    run: async (lab) => {
      await run(lab);
    },
  };
}

const at = (time: string): Step =>
  setup(`until ${time}`, (lab) => lab.clock.advanceTo(Date.parse(`2026-11-29T${time}Z`)));

type Params = Readonly<Record<string, string | number>>;

const task = (text: string, method: string, path: string, params: Params = {}): Step =>
  setup(text, (lab) => lab.task(method, path, params));

const asAdmin = (text: string, path: string, params: Params): Step =>
  setup(text, (lab) => lab.task('POST', path, params, ADMIN));

const put = (path: string, params: Params): Step =>
  setup(`PUT ${path}`, (lab) => lab.call('PUT', `${path}/config`, params));

const edit = (text: string, vmid: number, changes: Readonly<Record<string, string | null>>): Step =>
  setup(text, async (lab) => {
    lab.simulator.editConfig(vmid, changes);
    await Promise.resolve();
  });

const node = (
  text: string,
  name: string,
  change: Parameters<Lab['simulator']['setNode']>[1],
): Step =>
  setup(text, async (lab) => {
    lab.simulator.setNode(name, change);
    await Promise.resolve();
  });

/** How root made the templates, and the uploads of a first run; only `GET /cluster/tasks` still shows them. */
const history: readonly Step[] = [
  setup('the templates are made', async (lab) => {
    const past = [
      ['pve1', 'qmdestroy', '150', 'root@pam'],
      ['pve1', 'qmcreate', '9002', 'root@pam'],
      ['pve1', 'qmtemplate', '9002', 'root@pam'],
      ['pve2', 'qmcreate', '9003', 'root@pam'],
      ['pve2', 'qmtemplate', '9003', 'root@pam'],
      ['pve1', 'imgcopy', '', 'proxy-operator@pve!operator'],
      ['pve1', 'imgcopy', '', 'proxy-operator@pve!operator'],
    ] as const;
    for (const [host, type, id, authId] of past) {
      const { tasks } = lab.simulator.core;
      await lab.ended(tasks.start({ node: host, type, id, authId }, () => Promise.resolve()));
    }
  }),
];

const proxying: readonly Step[] = [
  '30-resources-all-both-up',
  '30-resources-node-both-up',
  '30-resources-storage-both-up',
  '30-resources-vm-both-up',
  '30-node-status-pve2-via-pve1',
  '30-proxied-clone',
  '30-proxied-config',
  '30-proxied-put-config-bad',
  '30-proxied-status-current',
  '30-proxied-put-config',
  '30-wrong-node-config',
  '30-wrong-node-status',
  { replay: '30-proxied-wrong-secret', secret: '00000000-0000-4000-8000-00000000dead' },
  '30-proxied-resize',
  '30-proxied-upload-nonshared',
  '30-proxied-content-pve2',
  '30-proxied-put-ide2',
  task('start 201', 'POST', `${TWO}/201/status/start`),
  setup('start 201 again', async (lab) => {
    const upid = await lab.task('POST', `${TWO}/201/status/start`);
    lab.adopt(
      'UPID:pve2:000004ED:0009950C:6B0C3BB7:qmstart:201:proxy-operator@pve!operator:',
      upid,
    );
  }),
  '30-cluster-tasks',
  '30-task-status-wrong-node',
  '30-task-log-wrong-node',
  '30-task-status-localhost',
  '30-proxied-agent',
  '30-wrong-node-agent',
  '30-proxied-status-current-running',
  '30-resources-vm-pve2-running',
  '30-wrong-node-start',
  '30-proxied-stop',
  '30-wrong-node-put-config',
  '30-wrong-node-destroy',
  '30-delete-iso-on-wrong-node',
  '30-content-pve2-after-delete-on-wrong-node',
  setup('a round of pvestatd', async (lab) => {
    lab.simulator.refreshStats();
    await Promise.resolve();
  }),
  '30-destroy-proxied',
  '30-delete-iso-proxied',
  setup('a seed on the shared storage', (lab) => lab.upload('shared-images', 'seed-s.iso')),
  '30-content-shared-pve2',
  '30-upload-big-to-pve2',
  '30-delete-big',
];

const targets: readonly Step[] = [
  setup('the shared seed is removed', (lab) =>
    lab.task('DELETE', '/nodes/pve2/storage/shared-images/content/shared-images:iso/seed-s.iso'),
  ),
  at('14:51:26'),
  task('201 is made again', 'POST', `${TWO}/9003/clone`, { newid: 201, name: 'egress-b' }),
  at('14:51:27'),
  '30-clone-newid-on-other-node',
  task('the VMID of a template of pve1', 'POST', `${TWO}/9003/clone`, { newid: 9001 }),
  '30-clone-template-wrong-node',
  '30-clone-target-local-full',
  '30-clone-target-local-full-storage-shared',
  '30-clone-target-local-full-storage-local',
  '30-clone-target-shared-linked-storage',
  '30-clone-target-shared-full-storage-local',
  '30-clone-target-unknown-node',
  { watch: '30-clone-target-shared-linked-timeline' },
  task('204: linked, target pve2', 'POST', `${ONE}/9002/clone`, {
    newid: 204,
    name: 'egress-t',
    description: DESCRIPTION,
    target: 'pve2',
  }),
  '30-clone-target-resources-after',
  { replay: '30-clone-target-shared-full-ok', withoutTask: true },
  { watch: '30-clone-target-shared-full-timeline' },
  '30-clone-target-shared-full-ok-task-status',
  '30-clone-target-shared-full-ok-task-log',
  '30-upload-t',
  edit('the shared template gets an ISO of a local storage', 9002, {
    ide2: 'proxy-seeds:iso/t.iso,media=cdrom,size=366K',
    boot: 'order=scsi0;ide2',
  }),
  '30-clone-target-template-with-local-iso',
  '30-clone-target-template-with-local-iso-full',
  '30-clone-no-target-template-with-local-iso',
  '30-clone-no-target-template-with-local-iso-config',
  edit('and loses it again', 9002, { ide2: null, boot: 'order=scsi0' }),
  at('14:52:47'),
  '30-clone-race-two-nodes',
  '30-clone-409-nextid',
];

const migrations: readonly Step[] = [
  at('14:53:20'),
  '30-migrate-no-privilege',
  '30-migrate-preconditions-shared',
  { watch: '30-migrate-offline-shared-timeline' },
  '30-migrate-offline-shared',
  '30-migrate-after-config-old-node',
  '30-migrate-wrong-node',
  '30-migrate-to-same-node',
  task('start 204 under its old node', 'POST', `${TWO}/204/status/start`),
  '30-upload-seed-204',
  '30-put-ide2-local',
  '30-migrate-preconditions-local-iso',
  { watch: '30-migrate-offline-local-iso-timeline' },
  '30-migrate-offline-local-iso',
  '30-upload-seed-204-pve2',
  '30-migrate-offline-local-iso-same-file-on-target',
  task('start 204', 'POST', `${ONE}/204/status/start`),
  '30-migrate-preconditions-local-iso-running',
  '30-migrate-running-without-online',
  '30-migrate-online-local-iso',
  '30-migrate-online-local-iso-task-status',
  '30-migrate-online-local-iso-task-log',
  '30-migrate-online-local-iso-with-local-disks',
  '30-put-ide2-none',
  '30-config-ide2-none',
  at('14:53:48.9'),
  { watch: '30-migrate-online-shared-timeline' },
  { replay: '30-migrate-online-shared', withoutTask: true },
  '30-during-migrate-config',
  '30-during-migrate-status-source',
  '30-during-migrate-status-target',
  '30-during-migrate-put-config',
  setup('stop 204 while it migrates', (lab) => lab.call('POST', `${ONE}/204/status/stop`)),
  '30-during-migrate-start',
  '30-during-migrate-resize',
  '30-during-migrate-destroy',
  '30-during-migrate-agent',
  '30-migrate-online-shared-task-status',
  '30-migrate-online-shared-task-log',
  '30-upload-shared-seed-204',
  '30-put-ide2-shared',
  '30-migrate-preconditions-shared-iso-running',
  '30-migrate-online-shared-iso',
  '30-config-after-migrate-shared-iso',
  '30-migrate-online-back',
  '30-migrate-preconditions-local-disk',
  '30-migrate-offline-local-linked',
  task('211: full clone on pve2', 'POST', `${TWO}/9003/clone`, {
    newid: 211,
    full: 1,
    name: 'egress-l',
    description: 'template on pve2 local storage',
  }),
  at('14:55:41.7'),
  { watch: '30-migrate-offline-local-full-timeline' },
  '30-migrate-offline-local-full',
  '30-destroy-211',
  '30-destroy-208',
  task('destroy 209', 'DELETE', `${TWO}/209`, { purge: 1 }),
  '30-migrate-target-unknown',
  '30-migrate-template-shared',
  '30-clone-template-moved',
  asAdmin('the template comes back', `${TWO}/9002/migrate`, { target: 'pve1' }),
];

const nodeDown: readonly Step[] = [
  at('14:56:25'),
  put(`${TWO}/201`, { tags: 'egress;owner-x' }),
  put(`${TWO}/204`, { tags: 'egress;owner-x' }),
  task('start 201', 'POST', `${TWO}/201/status/start`),
  setup('a slow clone on pve2', async (lab) => {
    const upid = await lab.call('POST', `${TWO}/9003/clone`, { newid: 210, full: 1, bwlimit: 256 });
    lab.adopt(
      'UPID:pve2:0000100B:000A204D:6B0C3D1B:qmclone:9003:proxy-operator@pve!operator:',
      String(upid),
    );
  }),
  at('14:56:42'),
  { watch: '30-down-timeline' },
  node('power cut of pve2', 'pve2', { state: 'dead' }),
  '30-down-task-status-running-task',
  '30-down-05s-resources-vm',
  '30-down-05s-resources-node',
  '30-down-05s-nodes',
  '30-down-05s-cluster-status',
  '30-down-config',
  '30-down-30s-resources-vm',
  task('a newid of the dead node', 'POST', `${ONE}/9001/clone`, { newid: 201 }),
  '30-down-clone-target-dead-node',
  '30-down-destroy-under-dead-node',
  '30-down-destroy-under-pve1',
  task('stop 204 under pve1', 'POST', `${ONE}/204/status/stop`),
  at('14:57:21'),
  setup('upload to the shared storage', (lab) => lab.upload('shared-images', 'down-s.iso')),
  '30-down-delete-iso-dead-node',
  '30-down-cluster-tasks',
  '30-down-120s-resources-vm',
  '30-down-370s-resources-vm',
  '30-down-370s-resources-storage',
  '30-down-370s-cluster-status',
  at('15:02:54'),
  node('pve2 is back', 'pve2', { state: 'up' }),
  at('15:03:10'),
  '30-back-half-clone-config',
  '30-down-back-resources-storage',
];

const noQuorum: readonly Step[] = [
  at('15:03:55'),
  task('start 204', 'POST', `${TWO}/204/status/start`),
  at('15:04:30'),
  { watch: '30-noquorum-timeline' },
  node('pve2 loses corosync only', 'pve2', { quorum: false }),
  at('15:04:41'),
  '30-noquorum-status-current-at-pve1',
  '30-noquorum-start-at-pve1',
  '30-noquorum-put-config-at-pve1',
  '30-noquorum-resources-node-at-pve1',
  '30-noquorum-resources-storage-at-pve1',
  '30-noquorum-destroy-at-pve1',
  '30-noquorum-resize-at-pve1',
  '30-noquorum-cluster-status-at-pve2',
  '30-noquorum-resize-at-pve2',
  '30-noquorum-stop-via-pve1',
  '30-noquorum-status-after-stop',
  '30-noquorum-upload-at-pve2',
  '30-noquorum-clone-newid-on-pve2',
  '30-noquorum-clone-at-quorate-side',
  '30-noquorum-config-of-new-vm-asked-at-pve2',
  '30-noquorum-clone-target',
  '30-noquorum-start-at-pve1-of-204',
  '30-noquorum-migrate',
  at('15:05:22'),
  { watch: '30-noquorum-heal-timeline' },
  node('corosync flows again', 'pve2', { quorum: true }),
  task('start 216', 'POST', `${ONE}/216/status/start`),
];

const cutOff: readonly Step[] = [
  at('15:05:50'),
  task('start 204', 'POST', `${TWO}/204/status/start`),
  setup('the lock of 204 is held for 8 s, packets are dropped after 2 s', async (lab) => {
    await lab.clock.advanceTo(Date.parse('2026-11-29T15:06:00Z'));
    const owner = { log: (): void => undefined };
    const path = '/var/lock/qemu-server/lock-204.conf';
    void lab.simulator.core
      .locks('pve2')
      .withLock({ path, timeoutSeconds: 1, owner }, () => lab.clock.sleep(8));
    void lab.clock.sleep(2).then(() => {
      lab.simulator.setNode('pve2', { state: 'cut', quorum: false });
    });
  }),
  '30-cut-in-flight-put-config',
  '30-cut-upload',
  '30-cut-get-config-at-once',
  '30-cut-get-config',
  '30-cut-post-start',
  at('15:07:25'),
  node('packets flow again', 'pve2', { state: 'up', quorum: true }),
  '30-cut-healed-config',
  setup('every ssh login takes four seconds more', async (lab) => {
    const two = lab.simulator.cluster.nodes.get('pve2');
    if (two !== undefined) two.sshSeconds = 9;
    await lab.clock.advanceTo(Date.parse('2026-11-29T15:08:10Z'));
  }),
  '30-upload-slow-ssh',
  setup('ssh is quick again', async (lab) => {
    const two = lab.simulator.cluster.nodes.get('pve2');
    await lab.advance(6);
    if (two !== undefined) two.sshSeconds = 0.7;
  }),
  '30-upload-slow-ssh-content',
  '30-upload-slow-ssh-tasks',
  put(`${TWO}/204`, { tags: 'egress;owner-v' }),
  '30-cut-8006-healed-config',
];

const highAvailability: readonly Step[] = [
  // After a round of pvestatd, which for a while does not know it.
  at('15:10:25.6'),
  task('220 is made', 'POST', `${ONE}/9002/clone`, {
    newid: 220,
    name: 'egress-ha',
    description: DESCRIPTION,
  }),
  '30-ha-config-before',
  '30-ha-status-before',
  '30-ha-status-operator',
  '30-ha-add-operator',
  { watch: '30-ha-timeline-start-stop' },
  '30-ha-add',
  '30-ha-config-managed',
  '30-ha-status-current-managed',
  '30-ha-resources-managed',
  '30-ha-destroy-running',
  '30-ha-stop',
  '30-ha-destroy-right-after-stop-ok',
  at('15:10:52.400'),
  '30-ha-status-current-stopped',
  '30-ha-start',
  '30-ha-status-current-right-after-start-ok',
  '30-ha-shutdown',
  at('15:12:01.9'),
  { watch: '30-ha-timeline-migrate' },
  '30-ha-migrate-stopped',
  '30-ha-start-pve2',
  '30-ha-migrate-online',
  at('15:16:03'),
  setup('220 in state error', async (lab) => {
    const resource = lab.simulator.cluster.ha.resources.get(220);
    if (resource !== undefined) resource.state = 'error';
    await lab.task('POST', `${ONE}/220/migrate`, { target: 'pve2' }, ADMIN);
    await lab.task('POST', `${ONE}/220/migrate`, { target: 'pve2' }, ADMIN);
  }),
  setup('220 is made again', async (lab) => {
    lab.simulator.powerOffVm(220);
    await lab.clock.advanceTo(Date.parse('2026-11-29T15:16:20Z'));
    await lab.task('DELETE', `${ONE}/220`, { purge: 1 });
    const params = { newid: 220, name: 'egress-ha', description: DESCRIPTION };
    await lab.task('POST', `${ONE}/9002/clone`, params);
    await lab.clock.advanceTo(Date.parse('2026-11-29T15:16:55Z'));
    const added = { sid: 'vm:220', state: 'started' };
    await lab.call('POST', '/cluster/ha/resources', added, ADMIN);
  }),
  at('15:17:10.9'),
  { watch: '30-ha-timeline-error' },
  '30-ha-stop2',
  edit('an ISO that does not exist', 220, { ide2: 'proxy-seeds:iso/gone.iso,media=cdrom' }),
  at('15:17:33'),
  task('start 220', 'POST', `${ONE}/220/status/start`),
  at('15:18:30.900'),
  '30-ha-error-status-current',
  '30-ha-error-resources',
  '30-ha-error-status',
  '30-ha-error-tasks',
  '30-ha-error-start',
  '30-ha-error-stop',
  '30-ha-error-migrate',
  '30-ha-error-put-config',
  at('15:18:48'),
  task('destroy 220', 'DELETE', `${ONE}/220`, { purge: 1 }),
  '30-ha-row-after-destroy',
  '30-ha-resources-after-destroy',
  '30-ha-status-after-destroy',
  task('221 on pve2', 'POST', `${ONE}/9002/clone`, {
    newid: 221,
    name: 'egress-ha2',
    description: DESCRIPTION,
    target: 'pve2',
  }),
  put(`${TWO}/221`, { tags: 'egress;owner-x' }),
  '30-ha-add-2',
  at('15:19:31'),
  node('power cut of pve2', 'pve2', { state: 'dead' }),
  { watch: '30-ha-timeline-node-failure' },
  '30-ha-fence-stop-during',
  '30-ha-recovered-resources',
  '30-ha-recovered-config',
  '30-ha-recovered-ha-status',
  at('15:22:30'),
  node('pve2 is back', 'pve2', { state: 'up' }),
  task('stop 221', 'POST', `${ONE}/221/status/stop`),
  at('15:23:25'),
  setup('the lock of 221 is held for a moment', async (lab) => {
    const owner = { log: (): void => undefined };
    const path = '/var/lock/qemu-server/lock-221.conf';
    await lab.clock.advanceTo(Date.parse('2026-11-29T15:23:26Z'));
    void lab.simulator.core
      .locks('pve1')
      .withLock({ path, timeoutSeconds: 1, owner }, () => lab.clock.sleep(0.5));
  }),
  '30-ha-destroy-purge',
  '30-upload-for-upid-test',
  '30-upload-task-status-under-path-node',
  '30-half-clone-destroy',
  at('15:23:32'),
  node('pveproxy of pve2 is down', 'pve2', { state: 'refusing' }),
  '30-pve2-pveproxy-down-nodes',
  at('15:23:44'),
  node('pmxcfs of pve2 is down', 'pve2', { state: 'up', pmxcfs: false }),
  '30-pve2-pmxcfs-down-nodes',
  '30-pve2-pmxcfs-down-cluster-status',
];

/** The captures of the two-node cluster in the order of their time stamps. */
export const clusterSessions: readonly Session[] = [
  {
    title: 'two nodes',
    fixture: 'fixture-cluster.yaml',
    // Rounds of pvestatd came at :x5.5.
    start: '2026-11-29T14:49:35.500Z',
    steps: [
      ...history,
      ...proxying,
      ...targets,
      ...migrations,
      ...nodeDown,
      ...noQuorum,
      ...cutOff,
      ...highAvailability,
    ],
  },
];
