import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import type { AgentInterface } from '../../activities/proxmox/api.ts';
import { chooseAddress } from '../../activities/vm/address.ts';
import type { AddressPolicy } from '../../activities/vm/address.ts';

const mac = '00:00:5E:00:53:01';
const ipv4Only: AddressPolicy = { family: 'ipv4', cidrs: [] };

function nic(name: string, hardware: string | null, ...addresses: string[]): AgentInterface {
  return {
    name,
    mac: hardware,
    addresses: addresses.map((text) => {
      const [address = '', prefix = ''] = text.split('/');
      return {
        family: address.includes(':') ? 'ipv6' : 'ipv4',
        address,
        prefix: Number(prefix),
      };
    }),
  };
}

const lo = nic('lo', '00:00:00:00:00:00', '127.0.0.1/8', '::1/128');
const docker0 = nic('docker0', '02:42:aa:bb:cc:dd', '172.17.0.1/16');
const tun0 = nic('tun0', null, '203.0.113.9/32');
const ens19 = nic('ens19', '00:00:5e:00:53:02');
const ens18 = nic('ens18', mac.toLowerCase(), 'fe80::200:5eff:fe00:5301/64', '192.0.2.17/24');
/** cases.md 7, as reported by the agent. */
const guest = [lo, docker0, tun0, ens19, ens18];

function chosen(ip: string) {
  return { kind: 'address' as const, ip };
}

describe('the address of a proxy', () => {
  it("is on net0's MAC, not on the first interface with an address", () => {
    assert.deepEqual(chooseAddress(guest, mac, ipv4Only), chosen('192.0.2.17'));
  });

  it('is found whatever the case of the MAC, and with dashes as Windows writes it', () => {
    for (const written of [mac, mac.toLowerCase(), '00-00-5e-00-53-01']) {
      const windows = nic('Netzwerkkarte für Überall', written, '192.0.2.17/24');
      assert.deepEqual(chooseAddress([lo, windows], mac, ipv4Only), chosen('192.0.2.17'));
      assert.deepEqual(chooseAddress([lo, windows], written, ipv4Only), chosen('192.0.2.17'));
    }
  });

  it('may be in 172.16/12, where Docker also lives', () => {
    const eth0 = nic('eth0', mac, '172.17.0.1/16');
    assert.deepEqual(chooseAddress([docker0, eth0], mac, ipv4Only), chosen('172.17.0.1'));
  });

  it('is on the bridge when a bridge and its port share the MAC', () => {
    const port = nic('ens18', mac);
    const bridge = nic('br0', mac, '192.0.2.17/24');
    assert.deepEqual(chooseAddress([port, bridge], mac, ipv4Only), chosen('192.0.2.17'));
    assert.deepEqual(chooseAddress([bridge, port], mac, ipv4Only), chosen('192.0.2.17'));
  });

  it('is waited for while the NIC has none, even if Docker has one already', () => {
    const booting = [lo, docker0, nic('ens18', mac)];
    assert.deepEqual(chooseAddress(booting, mac, ipv4Only), { kind: 'none' });
    assert.deepEqual(chooseAddress([], mac, ipv4Only), { kind: 'none' });
  });

  const unusable = [
    ['loopback', '127.0.0.1/8'],
    ['APIPA', '169.254.7.7/16'],
    ['unspecified', '0.0.0.0/8'],
    ['multicast', '239.1.2.3/24'],
    ['link-local IPv6', 'fe80::1/64'],
    ['loopback IPv6', '::1/128'],
    ['IPv4 mapped into IPv6', '::ffff:192.0.2.1/96'],
    ['an address with a zone', '2001:db8::1%eth0/64'],
    ['no address at all', 'garbage/24'],
  ] as const;
  for (const [what, text] of unusable) {
    it(`is never ${what}`, () => {
      const any: AddressPolicy = { family: 'any', cidrs: [] };
      assert.deepEqual(chooseAddress([nic('eth0', mac, text)], mac, any), { kind: 'none' });
      // A wide network does not name the special ranges inside it.
      const wide: AddressPolicy = { family: 'any', cidrs: ['0.0.0.0/0', '::/0'] };
      assert.deepEqual(chooseAddress([nic('eth0', mac, text)], mac, wide), { kind: 'none' });
    });
  }
});

describe('several addresses on the NIC', () => {
  const many = nic('ens18', mac, '198.51.100.5/24', '198.51.100.100/32', '192.0.2.17/24');

  it('give the lowest with a network around it, not the virtual IP', () => {
    assert.deepEqual(chooseAddress([many], mac, ipv4Only), chosen('192.0.2.17'));
    const vipLow = nic('ens18', mac, '10.0.0.1/32', '192.0.2.17/24');
    assert.deepEqual(chooseAddress([vipLow], mac, ipv4Only), chosen('192.0.2.17'));
  });

  it('are ordered as numbers', () => {
    const two = nic('ens18', mac, '10.0.0.10/24', '10.0.0.9/24');
    assert.deepEqual(chooseAddress([two], mac, ipv4Only), chosen('10.0.0.9'));
  });

  it('give a /32 when there is nothing else', () => {
    const routed = nic('ens18', mac, '203.0.113.9/32');
    assert.deepEqual(chooseAddress([routed], mac, ipv4Only), chosen('203.0.113.9'));
  });

  it('give the one in the configured network', () => {
    const policy: AddressPolicy = { family: 'ipv4', cidrs: ['198.51.100.0/24'] };
    assert.deepEqual(chooseAddress([many], mac, policy), chosen('198.51.100.5'));
  });

  it('give the one in the network configured first, though it is a /32', () => {
    const policy: AddressPolicy = {
      family: 'ipv4',
      cidrs: ['198.51.100.100/32', '192.0.2.0/24'],
    };
    assert.deepEqual(chooseAddress([many], mac, policy), chosen('198.51.100.100'));
  });

  it('give none when no configured network holds one', () => {
    const policy: AddressPolicy = { family: 'ipv4', cidrs: ['10.0.0.0/8'] };
    assert.deepEqual(chooseAddress([many], mac, policy), { kind: 'none' });
  });

  it('give the published one again while it is as good as the best', () => {
    const previous = '198.51.100.5';
    assert.deepEqual(chooseAddress([many], mac, ipv4Only, previous), chosen(previous));
  });

  it('give up a published one that is a virtual IP or gone', () => {
    for (const previous of ['198.51.100.100', '192.0.2.55', 'garbage', '']) {
      assert.deepEqual(chooseAddress([many], mac, ipv4Only, previous), chosen('192.0.2.17'));
    }
  });

  it('give the same whatever the order, for every guest', () => {
    const some = fc.constantFrom(
      '192.0.2.17/24',
      '192.0.2.9/24',
      '198.51.100.100/32',
      '10.1.2.3/8',
      'fe80::1/64',
      '2001:db8::7/64',
      '127.0.0.1/8',
    );
    const interfaces = fc.array(
      fc
        .tuple(fc.constantFrom(mac, '02:42:aa:bb:cc:dd', null), fc.uniqueArray(some))
        .map(([hardware, addresses]) => nic('eth', hardware, ...addresses)),
      { maxLength: 4 },
    );
    const shuffled = interfaces.chain((list) =>
      fc.tuple(
        fc.constant(list),
        fc
          .shuffledSubarray(list, { minLength: list.length })
          .map((other) => other.map((one) => ({ ...one, addresses: one.addresses.toReversed() }))),
      ),
    );
    const policy = fc.constantFrom<AddressPolicy>(
      ipv4Only,
      { family: 'ipv6', cidrs: [] },
      { family: 'any', cidrs: [] },
      { family: 'any', cidrs: ['198.51.100.0/24', '192.0.2.0/24'] },
    );
    fc.assert(
      fc.property(shuffled, policy, ([one, other], wanted) => {
        assert.deepEqual(chooseAddress(one, mac, wanted), chooseAddress(other, mac, wanted));
      }),
    );
  });
});

describe('families and special ranges', () => {
  const dual = nic('eth0', mac, '2001:DB8:0:0::17/64', 'fd00::17/64', '192.0.2.17/24');

  it('follow the configured family', () => {
    assert.deepEqual(chooseAddress([dual], mac, ipv4Only), chosen('192.0.2.17'));
    const v6: AddressPolicy = { family: 'ipv6', cidrs: [] };
    assert.deepEqual(chooseAddress([dual], mac, v6), chosen('2001:db8::17'));
    const any: AddressPolicy = { family: 'any', cidrs: [] };
    assert.deepEqual(chooseAddress([dual], mac, any), chosen('192.0.2.17'));
  });

  it('prefer the network configured first over the family', () => {
    const policy: AddressPolicy = { family: 'any', cidrs: ['fd00::/8', '192.0.2.0/24'] };
    assert.deepEqual(chooseAddress([dual], mac, policy), chosen('fd00::17'));
  });

  it('know a published IPv6 address in another spelling', () => {
    const v6: AddressPolicy = { family: 'ipv6', cidrs: [] };
    const previous = 'FD00:0:0::17';
    assert.deepEqual(chooseAddress([dual], mac, v6, previous), chosen('fd00::17'));
  });

  it('take a DHCPv6 lease, which is a /128', () => {
    const leased = nic('eth0', mac, '2001:db8::1:17/128', '2001:db8::200:5eff:fe00:5301/64');
    const v6: AddressPolicy = { family: 'ipv6', cidrs: [] };
    assert.deepEqual(chooseAddress([leased], mac, v6), chosen('2001:db8::1:17'));
  });

  it('allow loopback and link-local where the configuration names them', () => {
    const local = nic('eth0', mac, '127.64.3.9/16', '127.0.0.1/8', '169.254.7.7/16');
    const loopback: AddressPolicy = { family: 'ipv4', cidrs: ['127.64.0.0/10'] };
    assert.deepEqual(chooseAddress([local], mac, loopback), chosen('127.64.3.9'));
    const linkLocal: AddressPolicy = { family: 'ipv4', cidrs: ['169.254.0.0/16'] };
    assert.deepEqual(chooseAddress([local], mac, linkLocal), chosen('169.254.7.7'));
  });
});

describe("a guest that does not show net0's MAC", () => {
  it('gives its only address', () => {
    const single = [lo, ens19, nic('eth0', '02:00:00:00:00:01', '192.0.2.17/24')];
    assert.deepEqual(chooseAddress(single, mac, ipv4Only), chosen('192.0.2.17'));
    assert.deepEqual(chooseAddress(single, null, ipv4Only), chosen('192.0.2.17'));
  });

  it('gives its only address though two interfaces report it', () => {
    const twice = [nic('br0', null, '192.0.2.17/24'), nic('eth0', null, '192.0.2.17/32')];
    assert.deepEqual(chooseAddress(twice, mac, ipv4Only), chosen('192.0.2.17'));
  });

  it('is ambiguous with several, and lists them in a fixed order', () => {
    const others = [lo, tun0, docker0, ens19];
    const expected = { kind: 'ambiguous', candidates: ['172.17.0.1', '203.0.113.9'] };
    assert.deepEqual(chooseAddress(others, mac, ipv4Only), expected);
    assert.deepEqual(chooseAddress(others.toReversed(), mac, ipv4Only), expected);
  });

  it('stays ambiguous though one of them was published', () => {
    const choice = chooseAddress([tun0, docker0], mac, ipv4Only, '203.0.113.9');
    assert.equal(choice.kind, 'ambiguous');
  });

  it('is not ambiguous when the configuration names the network', () => {
    const policy: AddressPolicy = { family: 'ipv4', cidrs: ['203.0.113.0/24'] };
    assert.deepEqual(chooseAddress([tun0, docker0], mac, policy), chosen('203.0.113.9'));
  });

  it('gives none without any usable address', () => {
    assert.deepEqual(chooseAddress([lo, ens19], mac, ipv4Only), { kind: 'none' });
  });
});
