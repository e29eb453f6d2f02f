import type { Call, Core } from './core.ts';
import { dieWith } from './errors.ts';
import { powerOff, powerOn } from './power.ts';
import type { Vm } from './cluster.ts';

/** Is the VM one of the HA manager's? (api-facts 6) */
export function isHaManaged(core: Core, vmid: number): boolean {
  const resource = core.cluster.ha.get(vmid);
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
): string {
  const { core } = call;
  return core.tasks.start(
    { node: call.node, type, id: String(vmid), authId: call.who.authId },
    async (worker) => {
      worker.log(`Requesting HA ${type === 'hastart' ? 'start' : 'stop'} for VM ${vmid}`);
      await worker.sleep(1);
      const resource = core.cluster.ha.get(vmid);
      if (resource === undefined) throw dieWith(`no such resource 'vm:${vmid}'`);
      if (resource.state === 'error') {
        worker.log(`service 'vm:${vmid}' in error state, must be disabled and fixed first`);
        const command =
          type === 'hastart' ? `set vm:${vmid} --state started` : `crm-command stop vm:${vmid} 0`;
        throw dieWith(`command 'ha-manager ${command}' failed: exit code 255`);
      }
      resource.wanted = wanted;
    },
  );
}

/** The manager's rounds: brings every managed VM to its wanted state. */
export function startHaManager(core: Core): () => void {
  const stopping = new AbortController();
  const loop = async (): Promise<void> => {
    for (;;) {
      await core.clock.sleep(core.times.haSeconds, stopping.signal);
      for (const resource of core.cluster.ha.values()) {
        const vm = core.cluster.vms.get(resource.vmid);
        if (vm === undefined) core.cluster.ha.delete(resource.vmid);
        else round(core, vm);
      }
    }
  };
  loop().catch(() => undefined);
  return () => {
    stopping.abort(new Error('stopped'));
  };
}

function round(core: Core, vm: Vm): void {
  const resource = core.cluster.ha.get(vm.vmid);
  if (resource === undefined || resource.wanted === 'ignored' || resource.state === 'error') return;
  const node = core.cluster.nodes.get(vm.node);
  if (node?.state !== 'up' || vm.config.has('lock')) return;
  if (resource.wanted === 'started') {
    if (vm.running === null) powerOn(core, vm);
    resource.state = 'started';
    return;
  }
  if (vm.running !== null && resource.state !== 'request_stop') {
    resource.state = 'request_stop';
    return;
  }
  if (vm.running !== null) powerOff(core, vm);
  resource.state = 'stopped';
}
