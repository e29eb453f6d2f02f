import { isMember } from '../cluster.ts';
import { nodePrivilege, optionalText, text, type Call, type Endpoint } from '../core.ts';
import { paramError } from '../errors.ts';
import { common } from '../schema.ts';
import { nodeRow } from './cluster.ts';

export const nodeEndpoints: readonly Endpoint[] = [
  {
    method: 'GET',
    path: '/nodes',
    schema: {},
    handler: (call) =>
      [...call.core.cluster.nodes.values()]
        .filter(isMember)
        .map((node) => nodeRow(call, node, false)),
  },
  {
    method: 'GET',
    path: '/nodes/{node}/status',
    proxied: true,
    schema: {},
    check: nodePrivilege('Sys.Audit'),
    handler: nodeStatus,
  },
  {
    method: 'GET',
    path: '/nodes/{node}/network',
    proxied: true,
    schema: { type: common.optionalString },
    handler: ({ core, node, params, who }) => {
      const type = optionalText(params, 'type');
      if (type !== undefined && !['bridge', 'any_bridge', 'any_local_bridge'].includes(type))
        return [];
      return (core.cluster.nodes.get(node)?.bridges ?? [])
        .filter((bridge) =>
          core.access.has(who, `/sdn/zones/localnetwork/${bridge}`, 'SDN.Audit', 'SDN.Use'),
        )
        .map((bridge) => ({
          iface: bridge,
          ...bridgeFacts(core.cluster.nodes.get(node)?.ip ?? ''),
        }));
    },
  },
  {
    method: 'GET',
    path: '/nodes/{node}/network/{iface}',
    proxied: true,
    schema: {},
    check: nodePrivilege('Sys.Audit'),
    handler: ({ core, node, params }) => {
      const state = core.cluster.nodes.get(node);
      if (state?.bridges.includes(text(params, 'iface')) !== true) {
        throw paramError({ iface: 'interface does not exist' });
      }
      return bridgeFacts(state.ip);
    },
  },
];

function bridgeFacts(ip: string): Record<string, unknown> {
  return {
    type: 'bridge',
    method: 'static',
    method6: 'manual',
    address: ip,
    netmask: '24',
    cidr: `${ip}/24`,
    families: ['inet'],
    active: 1,
    autostart: 1,
    priority: 3,
    bridge_ports: '',
    bridge_stp: 'off',
    bridge_fd: '0',
  };
}

function nodeStatus({ core, node }: Call): Record<string, unknown> {
  const state = core.cluster.nodes.get(node);
  const { version, repoid } = core.cluster.version;
  const total = state?.memoryBytes ?? 0;
  return {
    cpu: 0.05,
    wait: 0,
    idle: 0,
    loadavg: ['0.30', '0.25', '0.20'],
    uptime: Math.floor(core.clock.since(state?.bootedAt ?? 0)),
    kversion: 'Linux 6.18.44-1-pve #1 SMP PREEMPT_DYNAMIC',
    pveversion: `pve-manager/${version}/${repoid}`,
    'current-kernel': {
      release: '6.18.44-1-pve',
      version: '#1 SMP PREEMPT_DYNAMIC',
      sysname: 'Linux',
      machine: 'x86_64',
    },
    'boot-info': { mode: 'legacy-bios' },
    ksm: { shared: 0 },
    swap: { total: 0, used: 0, free: 0 },
    memory: {
      total,
      used: 2_400_000_000,
      free: total - 2_400_000_000,
      available: total - 2_200_000_000,
    },
    rootfs: {
      total: 270_553_174_016,
      used: 29_849_563_136,
      free: 240_703_610_880,
      avail: 67_943_731_200,
    },
    cpuinfo: {
      cores: state?.cpus ?? 1,
      cpus: state?.cpus ?? 1,
      sockets: 1,
      model: 'Simulated Processor',
      vendor: 'GenuineIntel',
      family: '6',
      mhz: '2300.000',
      hvm: '1',
      flags: 'fpu',
      user_hz: 100,
    },
  };
}
