import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pollAgent } from '../../activities/pollAgent.ts';
import { NotYet } from '../../activities/providerError.ts';
import type { PollAgentInput } from '../../workflows/contract/steps.ts';
import { powerOn } from '../simulator/power.ts';
import { expectReason, withSteps, type StepRig } from '../support/stepHarness.ts';

const mac = '00:00:5e:00:53:01';

/** One interface as the guest agent reports it; keys that are left out are really absent. */
function nic(name: string, hardware: string | null, ...addresses: readonly string[]): object {
  const listed = addresses.map((written) => {
    const [address = '', prefix = ''] = written.split('/');
    const type = address.includes(':') ? 'ipv6' : 'ipv4';
    return { 'ip-address-type': type, 'ip-address': address, prefix: Number(prefix) };
  });
  return {
    name,
    ...(hardware === null ? {} : { 'hardware-address': hardware }),
    ...(listed.length === 0 ? {} : { 'ip-addresses': listed }),
  };
}

const lo = nic('lo', '00:00:00:00:00:00', '127.0.0.1/8', '::1/128');
const docker = nic('docker0', '02:42:aa:bb:cc:dd', '172.17.0.1/16');
const vpn = nic('tun0', null, '203.0.113.9/32');
const bare = nic('ens19', '00:00:5e:00:53:02');
const ens18 = nic('ens18', mac, 'fe80::200:5eff:fe00:5301/64', '192.0.2.17/24');

/** One look at a VM whose agent answers this. */
async function poll(
  rig: StepRig,
  data: unknown,
  asked: Pick<PollAgentInput, 'once' | 'previous'> = {},
): Promise<string> {
  const vm = rig.simulator.cluster.vms.get(rig.vmid) ?? rig.place({ config: { net0 } });
  if (vm.running === null) powerOn(rig.simulator.core, vm);
  const action = { kind: 'status', status: 200, reason: 'OK', when: 'before' } as const;
  const body = JSON.stringify({ data });
  const path = /\/agent\/network-get-interfaces$/;
  rig.simulator.faults.push({ path, action: { ...action, body } });
  const input = { ref: rig.ref, plan: rig.plan, vm: rig.vmRef(), ...asked };
  return (await rig.run(pollAgent, input)).ip;
}

const net0 = 'virtio=00:00:5E:00:53:01,bridge=vmbr0,tag=4';

// cases.md 7: the first address in the list is taken, or a missing key ends the parser.
describe('the address a guest reports', () => {
  const many = ['192.0.2.17/24', '198.51.100.5/24', '198.51.100.100/32'];
  const answers: [title: string, result: object[], ip: string][] = [
    ['behind loopback, docker0, a VPN and an interface without one', [lo, docker, vpn, bare, ens18], '192.0.2.17'],
    ['beside a secondary and a virtual one', [lo, nic('ens18', mac, ...many)], '192.0.2.17'],
    ['on the bridge that shares the MAC with its port', [nic('ens18', mac), nic('br0', mac, '192.0.2.17/24')], '192.0.2.17'],
    ['of an interface with a Windows name', [nic('Локальная сеть', '00-00-5E-00-53-01', '192.0.2.17/24')], '192.0.2.17'],
    ['under a MAC in capitals', [docker, nic('ens18', mac.toUpperCase(), '192.0.2.17/24')], '192.0.2.17'],
    ['in the private range that Docker uses, too', [nic('ens18', mac, '172.17.0.9/16')], '172.17.0.9'],
    ['alone, though on another MAC', [lo, nic('eth0', '00:00:5e:00:53:09', '192.0.2.17/24')], '192.0.2.17'],
  ]; // prettier-ignore
  for (const [title, result, ip] of answers) {
    it(`is found ${title}`, () =>
      withSteps(async (rig) => {
        assert.equal(await poll(rig, { result }), ip);
        assert.equal(await poll(rig, { result: result.toReversed() }), ip, 'in any order');
      }));
  }

  const unusable: [title: string, data: unknown][] = [
    ['an error instead of a list', { result: { error: { class: 'GenericError', desc: 'no' } } }],
    ['null', null],
    ['a list that is null', { result: null }],
    ['addresses that are null', { result: [{ name: 'ens18', 'hardware-address': mac, 'ip-addresses': null }] }],
    ['an empty list', { result: [] }],
    ['loopback alone', { result: [lo] }],
    ['docker0 while the NIC has no address yet', { result: [lo, docker, nic('ens18', mac)] }],
    ['link-local alone', { result: [nic('ens18', mac, 'fe80::1/64', '169.254.7.7/16')] }],
  ]; // prettier-ignore
  for (const [title, data] of unusable) {
    it(`is waited for when the agent reports ${title}`, () =>
      withSteps(async (rig) => {
        await assert.rejects(poll(rig, data), NotYet);
      }));
  }

  it('is ambiguous when no interface has the MAC and several could be meant, which are listed', () =>
    withSteps(async (rig) => {
      const asking = async (): Promise<string> => poll(rig, { result: [vpn, docker, lo] });
      const error = expectReason(await rig.refusal(asking, undefined), 'AddressAmbiguous');
      assert.match(error.message, /reports 172\.17\.0\.1, 203\.0\.113\.9 and none .*5E:00:53:01/);
      assert.match(error.facts.remedy ?? '', /address\.cidrs/);
    }));

  it('names ten of very many that could be meant: a status has its limits', () =>
    withSteps(async (rig) => {
      const reported = Array.from(
        { length: 300 },
        (_, index) => `10.9.${index >> 8}.${index & 255}/16`,
      );
      const asking = async (): Promise<string> =>
        poll(rig, { result: [nic('wg0', '02:00:00:00:00:09', ...reported)] });
      const error = expectReason(await rig.refusal(asking, undefined), 'AddressAmbiguous');
      assert.match(error.message, /reports (10\.9\.\d+\.\d+(, )?){10} and 290 more/);
      assert.ok(error.message.length < 600, error.message);
    }));
});

// cases.md 9: the address vanishes with every hiccup of the agent, or stays although DHCP gave another.
describe('a look at a VM that serves already', () => {
  const serving = { once: true, previous: '192.0.2.17' } as const;

  it('says that the agent is silent, which is no address and no change of it', () =>
    withSteps(async (rig) => {
      powerOn(rig.simulator.core, rig.place({ config: { net0 } }));
      const path = /\/agent\/network-get-interfaces$/;
      const reason = 'QEMU guest agent is not running';
      const action = { kind: 'status', status: 500, reason, when: 'before' } as const;
      rig.simulator.faults.push({ path, times: 3, action });
      const input = { ref: rig.ref, plan: rig.plan, vm: rig.vmRef(), ...serving };
      for (let look = 0; look < 3; look += 1) {
        expectReason(await rig.refusal(pollAgent, input), 'AgentSilent');
      }
      const bootingAgain = async (): Promise<string> => poll(rig, { result: [lo] }, serving);
      expectReason(await rig.refusal(bootingAgain, undefined), 'AgentSilent');
      assert.equal(await poll(rig, { result: [lo, ens18] }, serving), '192.0.2.17');
    }));

  it('gives the address that DHCP gave meanwhile', () =>
    withSteps(async (rig) => {
      const moved = nic('ens18', mac, '192.0.2.55/24');
      assert.equal(await poll(rig, { result: [lo, docker, moved] }, serving), '192.0.2.55');
    }));

  it('keeps to the address that is published while the NIC still has it', () =>
    withSteps(async (rig) => {
      const both = nic('ens18', mac, '192.0.2.5/24', '192.0.2.17/24');
      assert.equal(await poll(rig, { result: [both] }, serving), '192.0.2.17');
      assert.equal(await poll(rig, { result: [both] }), '192.0.2.5', 'the lower one otherwise');
    }));
});
