import { requireVm, vmName, type Running, type Vm } from '../cluster.ts';
import { integer, vmPrivilege, type Call, type Endpoint } from '../core.ts';
import { dieWith } from '../errors.ts';
import { nameFaultsOf } from '../nameFaults.ts';
import { agentAnswers } from '../power.ts';
import { parseNic } from '../vmConfig.ts';

const READ = vmPrivilege('VM.GuestAgent.Audit', 'VM.GuestAgent.Unrestricted');

/** What qemu-ga 10.0 offers (09-agent-info). */
const COMMANDS =
  `exec exec-status file-close file-flush file-open file-read file-seek file-write fsfreeze-freeze fsfreeze-freeze-list fsfreeze-status fsfreeze-thaw fstrim get-cpustats get-disks get-diskstats get-fsinfo get-host-name get-load get-memory-block-info get-memory-blocks get-osinfo get-time get-timezone get-users get-vcpus info network-get-interfaces network-get-route ping set-memory-blocks set-time set-user-password set-vcpus shutdown ssh-add-authorized-keys ssh-get-authorized-keys ssh-remove-authorized-keys suspend-disk suspend-hybrid suspend-ram sync sync-delimited`.split(
    /\s+/,
  );

/** These end the guest, so there is no answer. */
const WITHOUT_ANSWER = new Set(['shutdown', 'suspend-disk', 'suspend-hybrid', 'suspend-ram']);

const SUPPORTED = COMMANDS.map((name) => ({
  name: `guest-${name}`,
  enabled: true,
  'success-response': !WITHOUT_ANSWER.has(name),
}));

export const agentEndpoints: readonly Endpoint[] = [
  command('GET', 'network-get-interfaces', interfaces),
  command('GET', 'info', () => ({ version: '10.0.13', supported_commands: SUPPORTED })),
  command('GET', 'get-osinfo', () => ({
    'kernel-release': '6.12.117+deb13-cloud-amd64',
    'kernel-version': '#1 SMP PREEMPT_DYNAMIC Debian 6.12.117-1 (2026-11-12)',
    machine: 'x86_64',
  })),
  command('GET', 'get-host-name', (vm) => ({ 'host-name': vmName(vm) })),
  command('POST', 'ping', () => ({})),
];

function command(
  method: 'GET' | 'POST',
  name: string,
  result: (vm: Vm, running: Running) => unknown,
): Endpoint {
  return {
    method,
    path: `/nodes/{node}/qemu/{vmid}/agent/${name}`,
    proxied: true,
    protected: true,
    check: READ,
    schema: {},
    handler: async (call) => {
      const { vm, running } = await answeringAgent(call);
      const fault = nameFaultsOf(vmName(vm)).find((entry) => entry.agent === 'error');
      if (fault !== undefined && name !== 'ping') {
        // A QGA-level error is a success of the API (api-facts 5.22).
        const desc = `Command guest-${name} has been disabled`;
        return { result: { error: { class: 'CommandNotFound', desc } } };
      }
      return { result: result(vm, running) };
    },
  };
}

/** The captured sequence of errors; the last one takes three seconds. */
async function answeringAgent(call: Call): Promise<{ vm: Vm; running: Running }> {
  const { core, node, params } = call;
  const vmid = integer(params, 'vmid');
  const vm = requireVm(core.cluster, node, vmid);
  if (!vm.config.has('agent')) throw dieWith('No QEMU guest agent configured');
  const { running } = vm;
  if (running === null) throw dieWith(`VM ${vmid} is not running`);
  if (!agentAnswers(vm)) {
    await core.clock.sleep(core.times.agentTimeoutSeconds);
    throw dieWith('QEMU guest agent is not running');
  }
  return { vm, running };
}

function interfaces(vm: Vm, running: Running): unknown[] {
  const list: unknown[] = [
    {
      name: 'lo',
      'hardware-address': '00:00:00:00:00:00',
      'ip-addresses': [
        { 'ip-address-type': 'ipv4', 'ip-address': '127.0.0.1', prefix: 8 },
        { 'ip-address-type': 'ipv6', 'ip-address': '::1', prefix: 128 },
      ],
      statistics: counters(0),
    },
  ];
  const nic = vm.config.get('net0');
  if (nic === undefined) return list;
  const mac = parseNic('net0', nic).mac.toLowerCase();
  const addresses = [
    ...(running.address === null
      ? []
      : [{ 'ip-address-type': 'ipv4', 'ip-address': running.address, prefix: 24 }]),
    { 'ip-address-type': 'ipv6', 'ip-address': linkLocal(mac), prefix: 64 },
  ];
  list.push({
    name: 'eth0',
    'hardware-address': mac,
    'ip-addresses': addresses,
    statistics: counters(426),
  });
  return list;
}

function counters(bytes: number): Record<string, number> {
  return {
    'rx-bytes': bytes,
    'rx-packets': 1,
    'rx-errs': 0,
    'rx-dropped': 0,
    'tx-bytes': bytes,
    'tx-packets': 5,
    'tx-errs': 0,
    'tx-dropped': 0,
  };
}

/** EUI-64 address that Linux gives an interface with this MAC. */
function linkLocal(mac: string): string {
  const bytes = mac.split(':').map((part) => Number.parseInt(part, 16));
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = bytes;
  const groups = [((a ^ 2) << 8) | b, (c << 8) | 0xff, 0xfe00 | d, (e << 8) | f];
  return `fe80::${groups.map((group) => group.toString(16)).join(':')}`;
}
