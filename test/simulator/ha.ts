import type { HaResource, Vm } from './cluster.ts';
import { startTask, type Call, type Core } from './core.ts';
import { dieWith } from './errors.ts';
import { vmLockPath } from './locks.ts';
import { migrateVm } from './migration.ts';
import { shutdownQemu, startQemu, stopQemu } from './power.ts';
import type { Worker } from './tasks.ts';

/** Is the VM one of the HA manager's? (api-facts 6) */
export function isHaManaged(core: Core, vmid: number): boolean {
  const resource = core.cluster.ha.resources.get(vmid);
  return resource !== undefined && resource.wanted !== 'ignored';
}

/**
 * start, stop and shutdown of a managed VM: the task ends OK once the request is written down; the manager acts rounds
 * later (pve/cluster.md 27). In state `error` the request itself fails (31).
 */
export function requestHaState(
  call: Call,
  vmid: number,
  type: 'hastart' | 'hastop',
  wanted: 'started' | 'stopped',
  timeoutSeconds = 0,
): string {
  const verb = type === 'hastart' ? 'start' : 'stop';
  const command =
    type === 'hastart'
      ? `set vm:${vmid} --state started`
      : `crm-command stop vm:${vmid} ${timeoutSeconds}`;
  return request(call, vmid, type, `Requesting HA ${verb} for VM ${vmid}`, command, (resource) => {
    // A start is written into the configuration, a stop is a command for the manager's next round
    // (30-ha-timeline-error: `request_state` follows nine seconds later).
    if (wanted === 'started') resource.wanted = wanted;
    else resource.stopCommand = { timeoutSeconds };
  });
}

/** `hamigrate`: also only a request. */
export function requestHaMigration(call: Call, vmid: number, target: string): string {
  return request(
    call,
    vmid,
    'hamigrate',
    `Requesting HA migration for VM ${vmid} to node ${target}`,
    `migrate vm:${vmid} ${target}`,
    (resource) => {
      resource.migrateTo = target;
    },
  );
}

function request(
  call: Call,
  vmid: number,
  type: string,
  line: string,
  command: string,
  note: (resource: HaResource) => void,
): string {
  const { core } = call;
  return startTask(call, type, vmid, async (worker) => {
    worker.log(line);
    await worker.sleep(1);
    const resource = core.cluster.ha.resources.get(vmid);
    if (resource === undefined) throw dieWith(`no such resource 'vm:${vmid}'`);
    if (resource.state === 'error') {
      worker.log(`service 'vm:${vmid}' in error state, must be disabled and fixed first`);
      throw dieWith(`command 'ha-manager ${command}' failed: exit code 255`);
    }
    note(resource);
  });
}

/** Seconds after a node's death at which its services are fenced, and at which they are moved (pve/cluster.md 33). */
const FENCE_AFTER_SECONDS = 60;
const RECOVER_AFTER_SECONDS = 120;
/** The local managers follow this long after the cluster's (30-ha-timeline-*). */
const LRM_LAG_SECONDS = 1.4;

/** The manager's rounds: `pve-ha-crm` decides, and a moment later `pve-ha-lrm` of each node acts. */
export function startHaManager(core: Core): () => void {
  const stopping = new AbortController();
  const loop = async (): Promise<void> => {
    await core.clock.sleep(core.times.haOffsetSeconds, stopping.signal);
    for (;;) {
      decide(core);
      await core.clock.sleep(LRM_LAG_SECONDS, stopping.signal);
      act(core);
      await core.clock.sleep(core.times.haSeconds - LRM_LAG_SECONDS, stopping.signal);
    }
  };
  loop().catch(() => undefined);
  return () => {
    stopping.abort(new Error('stopped'));
  };
}

function decide(core: Core): void {
  const { ha } = core.cluster;
  ha.deleting.clear();
  if (ha.resources.size > 0) ha.active = true;
  for (const resource of ha.resources.values()) {
    const vm = core.cluster.vms.get(resource.vmid);
    if (vm === undefined) ha.resources.delete(resource.vmid);
    else if (resource.wanted !== 'ignored' && resource.state !== 'error') next(core, resource, vm);
  }
}

/** One transition of the cluster's manager. */
function next(core: Core, resource: HaResource, vm: Vm): void {
  if (resource.stopCommand !== null) {
    resource.wanted = 'stopped';
    resource.stopTimeoutSeconds = resource.stopCommand.timeoutSeconds;
    resource.stopCommand = null;
  }
  const node = core.cluster.nodes.get(vm.node);
  if (node?.state === 'dead' || node?.state === 'cut') {
    const seconds = core.clock.since(node.changedAt);
    if (seconds > RECOVER_AFTER_SECONDS) recover(core, resource, vm);
    else if (seconds > FENCE_AFTER_SECONDS) resource.state = 'fence';
    return;
  }
  if (resource.busy) return;
  if (resource.state === 'migrate' && resource.migrateTo !== null) return;
  if (resource.migrateTo !== null && resource.migrateTo !== vm.node) {
    resource.state = 'migrate';
    return;
  }
  resource.migrateTo = null;
  resource.node = vm.node;
  if (resource.failures >= 4) {
    resource.state = 'error';
    return;
  }
  if (resource.failures === 2 && !resource.relocated) {
    relocate(core, resource, vm);
    return;
  }
  const before = resource.state;
  if (resource.wanted === 'started') resource.state = 'started';
  else if (vm.running !== null || before === 'migrate' || before === null)
    resource.state = 'request_stop';
  else resource.state = 'stopped';
  if (resource.state !== before) resource.confirmed = false;
}

/** A VM that cannot start is tried on another node as well. */
function relocate(core: Core, resource: HaResource, vm: Vm): void {
  resource.relocated = true;
  const other = [...core.cluster.nodes.values()].find(
    (node) => node.state === 'up' && node.name !== vm.node,
  );
  if (other === undefined) return;
  resource.migrateTo = other.name;
  resource.state = 'migrate';
}

function recover(core: Core, resource: HaResource, vm: Vm): void {
  const other = [...core.cluster.nodes.values()].find((node) => node.state === 'up' && node.quorum);
  if (other === undefined) return;
  vm.node = other.name;
  resource.node = other.name;
  resource.recoveredAt = core.clock.now();
  resource.state = resource.wanted === 'started' ? 'started' : 'request_stop';
  resource.confirmed = false;
}

/** What the local managers do about it: real tasks of root@pam. */
function act(core: Core): void {
  for (const resource of core.cluster.ha.resources.values()) {
    const vm = core.cluster.vms.get(resource.vmid);
    const node = core.cluster.nodes.get(vm?.node ?? '');
    if (vm === undefined || node?.state !== 'up' || resource.busy) continue;
    // The new node's manager sees a recovered service a round later (30-ha-timeline-node-failure).
    if (core.clock.since(resource.recoveredAt) < core.times.haSeconds / 2) continue;
    if (resource.state === 'started') {
      if (vm.running !== null) resource.confirmed = true;
      else run(core, resource, vm, 'qmstart', (worker) => startQemu(core, vm, worker));
    } else if (resource.state === 'request_stop' && vm.running !== null) {
      const timeoutSeconds = resource.stopTimeoutSeconds;
      if (timeoutSeconds > 0) {
        run(core, resource, vm, 'qmshutdown', (worker) =>
          shutdownQemu(core, vm, worker, { timeoutSeconds, force: true }),
        );
      } else run(core, resource, vm, 'qmstop', (worker) => stopQemu(core, vm, worker));
    } else if (resource.state === 'migrate' && resource.migrateTo !== null) {
      const options = { target: resource.migrateTo, withLocalDisks: false, bwlimit: null };
      run(core, resource, vm, 'qmigrate', async (worker) => {
        try {
          await migrateVm(core, vm, options, worker);
        } finally {
          resource.migrateTo = null;
        }
      });
    }
  }
}

function run(
  core: Core,
  resource: HaResource,
  vm: Vm,
  type: string,
  body: (worker: Worker) => Promise<void>,
): void {
  resource.busy = true;
  const node = vm.node;
  core.tasks.start({ node, type, id: String(vm.vmid), authId: 'root@pam' }, async (worker) => {
    try {
      const lock = { path: vmLockPath(vm.vmid), timeoutSeconds: core.times.lockWaitSeconds };
      await core.locks(node).withLock({ ...lock, owner: worker }, () => body(worker));
      if (type === 'qmstart') resource.failures = 0;
    } catch (error) {
      if (type === 'qmstart') resource.failures += 1;
      throw error;
    } finally {
      resource.busy = false;
    }
  });
}
