import type { StorageFixture } from '../fixture.ts';
import { VM, SEED, setup, put, at, power, clone, destroy } from './oneNodeSteps.ts';
import type { Step } from './replay.ts';

const later: StorageFixture[] = [];

/** How root made the template; only `GET /cluster/tasks` still shows it. */
export const historyOfTheTemplate: readonly Step[] = [
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

/** Captures about authentication, and what happened between them. */
export const authentication: readonly Step[] = [
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

/** Captures about clones, and what happened between them. */
export const clones: readonly Step[] = [
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

/** Captures about uploads, and what happened between them. */
export const uploads: readonly Step[] = [
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

/** Captures about configs, and what happened between them. */
export const configs: readonly Step[] = [
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

/** Captures about running, and what happened between them. */
export const running: readonly Step[] = [
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
