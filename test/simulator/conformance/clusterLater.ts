import { ONE, TWO, ADMIN, DESCRIPTION, setup, at, task, put, edit, node } from './clusterSteps.ts';
import type { Step } from './replay.ts';

/** Captures about node down, and what happened between them. */
export const nodeDown: readonly Step[] = [
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

/** Captures about no quorum, and what happened between them. */
export const noQuorum: readonly Step[] = [
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

/** Captures about cut off, and what happened between them. */
export const cutOff: readonly Step[] = [
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

/** Captures about high availability, and what happened between them. */
export const highAvailability: readonly Step[] = [
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
