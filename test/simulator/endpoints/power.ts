import { checkLock, isTemplate, requireVm, vmOn } from '../cluster.ts';
import {
  flag,
  integer,
  startTask,
  underVmLock,
  vmPrivilege,
  type Call,
  type Endpoint,
} from '../core.ts';
import { dieWith, noConfigFound, paramError } from '../errors.ts';
import { isHaManaged, requestHaState } from '../ha.ts';
import { powerOff, shutdownQemu, startQemu, stopQemu } from '../power.ts';
import { common, type Schema } from '../schema.ts';

const POWER: Schema = {
  skiplock: common.optionalBoolean,
  timeout: common.optionalInteger,
};

export const powerEndpoints: readonly Endpoint[] = [
  action(
    'start',
    {
      ...POWER,
      stateuri: common.optionalString,
      machine: common.optionalString,
      migratedfrom: common.optionalString,
      forcecpu: common.optionalString,
      targetstorage: common.optionalString,
    },
    start,
  ),
  action(
    'stop',
    {
      ...POWER,
      keepActive: common.optionalBoolean,
      migratedfrom: common.optionalString,
      'overrule-shutdown': common.optionalBoolean,
    },
    stop,
  ),
  action(
    'shutdown',
    { ...POWER, keepActive: common.optionalBoolean, forceStop: common.optionalBoolean },
    shutdown,
  ),
  action('reset', { skiplock: common.optionalBoolean }, reset),
  action(
    'suspend',
    {
      skiplock: common.optionalBoolean,
      todisk: common.optionalBoolean,
      statestorage: common.optionalStorage,
    },
    suspend,
  ),
  action('resume', { skiplock: common.optionalBoolean, nocheck: common.optionalBoolean }, resume),
];

function action(name: string, schema: Schema, handler: (call: Call) => unknown): Endpoint {
  return {
    method: 'POST',
    path: `/nodes/{node}/qemu/{vmid}/status/${name}`,
    proxied: true,
    protected: true,
    check: vmPrivilege('VM.PowerMgmt'),
    schema,
    handler: (call) => {
      for (const key of ['skiplock', 'keepActive', 'migratedfrom', 'nocheck']) {
        if (call.params[key] !== undefined && call.params[key] !== false) {
          throw paramError({ [key]: 'Only root may use this option.' });
        }
      }
      return handler(call);
    },
  };
}

function start(call: Call): unknown {
  const vmid = integer(call.params, 'vmid');
  requireQuorum(call);
  if (isHaManaged(call.core, vmid)) return requestHaState(call, vmid, 'hastart', 'started');
  return startTask(call, 'qmstart', vmid, (worker) =>
    underVmLock(call, vmid, worker, async () => {
      await startQemu(call.core, requireVm(call.core.cluster, call.node, vmid), worker);
    }),
  );
}

export function requireQuorum(call: Pick<Call, 'core' | 'node'>): void {
  if (call.core.cluster.nodes.get(call.node)?.quorum === false) {
    throw dieWith('cluster not ready - no quorum?');
  }
}

function stop(call: Call): unknown {
  const { core, node, params } = call;
  const vmid = integer(params, 'vmid');
  const overrule = flag(params, 'overrule-shutdown') === true;
  if (isHaManaged(core, vmid)) {
    if (overrule) throw paramError({ 'overrule-shutdown': 'Not applicable for HA resources.' });
    return requestHaState(call, vmid, 'hastop', 'stopped');
  }
  if (overrule) {
    for (const task of core.tasks.all) {
      if (task.running && task.type === 'qmshutdown' && task.id === String(vmid)) {
        void core.tasks.stop(task);
      }
    }
  }
  return startTask(call, 'qmstop', vmid, (worker) =>
    underVmLock(call, vmid, worker, async () => {
      const vm = vmOn(core.cluster, node, vmid);
      if (vm === undefined) throw noConfigFound(node, vmid);
      await stopQemu(core, vm, worker);
    }),
  );
}

function shutdown(call: Call): unknown {
  const { core, node, params } = call;
  const vmid = integer(params, 'vmid');
  const vm = vmOn(core.cluster, node, vmid);
  const force = flag(params, 'forceStop') === true;
  if (isHaManaged(core, vmid)) {
    const seconds = params['timeout'] === undefined ? 60 : integer(params, 'timeout');
    return requestHaState(call, vmid, 'hastop', 'stopped', seconds);
  }
  if (vm?.running?.qmpstatus === 'paused' && !force)
    throw dieWith('VM is paused - cannot shutdown');
  const timeoutSeconds = params['timeout'] === undefined ? 60 : integer(params, 'timeout');
  return startTask(call, 'qmshutdown', vmid, (worker) =>
    underVmLock(call, vmid, worker, async () => {
      const current = vmOn(core.cluster, node, vmid);
      if (current === undefined) throw noConfigFound(node, vmid);
      await shutdownQemu(core, current, worker, { timeoutSeconds, force });
    }),
  );
}

function reset(call: Call): unknown {
  const vmid = integer(call.params, 'vmid');
  const vm = requireVm(call.core.cluster, call.node, vmid);
  if (vm.running === null) throw dieWith(`VM ${vmid} not running`);
  return startTask(call, 'qmreset', vmid, async (worker) => {
    checkLock(vm);
    await worker.sleep(0.1);
  });
}

function suspend(call: Call): unknown {
  const { core, node, params } = call;
  const vmid = integer(params, 'vmid');
  const vm = requireVm(core.cluster, node, vmid);
  if (vm.running === null) throw dieWith(`VM ${vmid} not running`);
  const toDisk = flag(params, 'todisk') === true;
  if (toDisk && isHaManaged(core, vmid)) throw dieWith('Cannot suspend HA managed VM to disk');
  return startTask(call, toDisk ? 'qmsuspend' : 'qmpause', vmid, (worker) =>
    underVmLock(call, vmid, worker, async () => {
      checkLock(vm, ['backup']);
      await worker.sleep(0.1);
      if (!toDisk) {
        if (vm.running !== null) vm.running.qmpstatus = 'paused';
        return;
      }
      vm.config.set('lock', 'suspending');
      await worker.sleep(3);
      powerOff(core, vm);
      const day = new Date(core.clock.now()).toISOString().slice(0, 10);
      const name = `${vmid}/vm-${vmid}-state-suspend-${day}.raw`;
      core.cluster.storages.add({
        storage: 'local',
        name,
        node,
        content: 'images',
        format: 'raw',
        size: 1024 ** 3,
        used: 1024 ** 3,
        ctime: Math.floor(core.clock.now() / 1000),
        vmid,
        base: null,
        bytes: null,
      });
      vm.config.set('vmstate', `local:${name}`);
      vm.config.set('lock', 'suspended');
    }),
  );
}

function resume(call: Call): unknown {
  const { core, node, params } = call;
  const vmid = integer(params, 'vmid');
  const vm = requireVm(core.cluster, node, vmid);
  if (isTemplate(vm)) throw dieWith(`VM ${vmid} is a template and cannot be resumed!`);
  const hibernated = vm.config.get('lock') === 'suspended';
  if (vm.running === null && !hibernated) throw dieWith(`VM ${vmid} not running`);
  return startTask(call, 'qmresume', vmid, (worker) =>
    underVmLock(call, vmid, worker, async () => {
      if (vm.running === null) {
        await startQemu(core, vm, worker);
        return;
      }
      checkLock(vm, ['backup']);
      await worker.sleep(0.1);
      vm.running.qmpstatus = 'running';
    }),
  );
}
