import {
  agentConfigured,
  isTemplate,
  mergedConfig,
  requireVm,
  vmDigest,
  vmFacts,
  type Vm,
} from '../cluster.ts';
import {
  flag,
  integer,
  optionalText,
  vmPrivilege,
  type Call,
  type Core,
  type Endpoint,
} from '../core.ts';
import { dieWith, paramError } from '../errors.ts';
import { common } from '../schema.ts';
import { jsonValue } from '../vmConfig.ts';

export const vmReadEndpoints: readonly Endpoint[] = [
  {
    method: 'GET',
    path: '/nodes/{node}/qemu',
    proxied: true,
    schema: { full: common.optionalBoolean },
    handler: ({ core, node, who, params }) =>
      [...core.cluster.vms.values()]
        .filter((vm) => vm.node === node && vm.type === 'qemu')
        .filter((vm) => core.access.has(who, `/vms/${vm.vmid}`, 'VM.Audit'))
        .map((vm) => {
          const base = listRow(core, vm);
          if (flag(params, 'full') !== true) return base;
          return { ...base, qmpstatus: vmFacts(vm, core.clock).qmpstatus, ...nics(vm) };
        }),
  },
  {
    method: 'GET',
    path: '/nodes/{node}/qemu/{vmid}/config',
    proxied: true,
    schema: { current: common.optionalBoolean, snapshot: common.optionalString },
    check: vmPrivilege('VM.Audit'),
    handler: readConfig,
  },
  {
    method: 'GET',
    path: '/nodes/{node}/qemu/{vmid}/pending',
    proxied: true,
    schema: {},
    check: vmPrivilege('VM.Audit'),
    handler: readPending,
  },
  {
    method: 'GET',
    path: '/nodes/{node}/qemu/{vmid}/status/current',
    proxied: true,
    protected: true,
    schema: {},
    check: vmPrivilege('VM.Audit'),
    handler: readStatus,
  },
];

function readConfig({ core, node, params }: Call): Record<string, unknown> {
  const snapshot = optionalText(params, 'snapshot');
  if (snapshot !== undefined && flag(params, 'current') === true) {
    throw paramError({ snapshot: "cannot use 'snapshot' parameter with 'current'" });
  }
  const vm = requireVm(core.cluster, node, integer(params, 'vmid'));
  if (snapshot !== undefined) throw dieWith(`snapshot '${snapshot}' does not exist`);
  const config = flag(params, 'current') === true ? vm.config : mergedConfig(vm);
  const shown: Record<string, unknown> = { digest: vmDigest(vm) };
  for (const [key, value] of config) {
    shown[key] = key === 'cipassword' ? '**********' : jsonValue(key, value);
  }
  return shown;
}

function readPending({ core, node, params }: Call): unknown[] {
  const vm = requireVm(core.cluster, node, integer(params, 'vmid'));
  const rows: unknown[] = [{ key: 'digest', value: vmDigest(vm) }];
  for (const key of new Set([...vm.config.keys(), ...vm.pending.keys()])) {
    const value = vm.config.get(key);
    const pending = vm.pending.get(key);
    rows.push({
      key,
      ...(value === undefined ? {} : { value: jsonValue(key, value) }),
      ...(pending === undefined ? {} : { pending: jsonValue(key, pending) }),
      ...(vm.pendingDelete.has(key) ? { delete: 1 } : {}),
    });
  }
  return rows;
}

/** Numbers both the list and `status/current` carry. */
function listRow(core: Core, vm: Vm): Record<string, unknown> {
  const facts = vmFacts(vm, core.clock);
  const lock = vm.config.get('lock');
  const tags = vm.config.get('tags');
  return {
    vmid: vm.vmid,
    name: facts.name,
    status: facts.status,
    cpus: facts.cpus,
    cpu: 0,
    maxmem: facts.maxmem,
    mem: 0,
    memhost: 0,
    maxdisk: facts.maxdisk,
    disk: 0,
    uptime: facts.uptime,
    netin: vm.running === null ? 0 : 220,
    netout: vm.running === null ? 0 : 516,
    ...(vm.running === null
      ? {}
      : {
          pid: vm.running.pid,
          pressurecpusome: 0,
          pressurecpufull: 0,
          pressureiosome: 0,
          pressureiofull: 0,
          pressurememorysome: 0,
          pressurememoryfull: 0,
        }),
    ...(vm.config.has('serial0') ? { serial: 1 } : {}),
    ...(isTemplate(vm) ? { template: 1 } : {}),
    ...(lock === undefined ? {} : { lock }),
    ...(tags === undefined || tags === '' ? {} : { tags }),
  };
}

function nics(vm: Vm): Record<string, unknown> {
  if (vm.running === null) return {};
  const taps: Record<string, unknown> = {};
  for (const key of vm.config.keys()) {
    const index = /^net(\d+)$/.exec(key)?.[1];
    if (index !== undefined) taps[`tap${vm.vmid}i${index}`] = { netin: 220, netout: 516 };
  }
  return { nics: taps };
}

function readStatus({ core, node, params }: Call): Record<string, unknown> {
  const vm = requireVm(core.cluster, node, integer(params, 'vmid'));
  const ha = core.cluster.ha.resources.get(vm.vmid);
  const managed = ha !== undefined && ha.wanted !== 'ignored';
  return {
    ...listRow(core, vm),
    qmpstatus: vmFacts(vm, core.clock).qmpstatus,
    ha: managed ? { managed: 1, state: ha.state } : { managed: 0 },
    ...(agentConfigured(vm) ? { agent: 1 } : {}),
    ...nics(vm),
  };
}
