/** Which of the addresses a guest reports is the Proxy's (design §7, cases.md 7). */
import { BlockList, SocketAddress, isIP } from 'node:net';
import type { AgentInterface } from '../proxmox/api.ts';

export interface AddressPolicy {
  family: 'ipv4' | 'ipv6' | 'any';
  /** When not empty, only addresses in one of these count, those of an earlier one first. Checked at config load. */
  cidrs: readonly string[];
}

export type AddressChoice =
  | { kind: 'address'; ip: string }
  /** Nothing usable yet: the guest is booting or waits for DHCP. */
  | { kind: 'none' }
  /** No interface has net0's MAC and several addresses could be meant; sorted. */
  | { kind: 'ambiguous'; candidates: string[] };

interface Candidate {
  ip: string;
  /** Smaller is better; addresses of equal rank are interchangeable, and then `ip` order decides. */
  rank: number;
  sortKey: string;
}

type Family = 'ipv4' | 'ipv6';

/** Unspecified, multicast and reserved: nothing a NIC could have. */
const unusableCidrs = ['0.0.0.0/8', '224.0.0.0/3', '::/128', 'ff00::/8'];
/** Ranges to serve on only if the configuration names them; an agent reports them too (pve/README 43). */
const specialCidrs: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  // 169.254/16 is what a guest gives itself when DHCP is silent (APIPA).
  'link-local': ['169.254.0.0/16', 'fe80::/10'],
};

function familyOf(address: string): Family {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}

/** Network address of `192.0.2.0/24`. */
function networkOf(cidr: string): string {
  return cidr.slice(0, cidr.indexOf('/'));
}

function rangeOf(cidrs: readonly string[]): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const network = networkOf(cidr);
    list.addSubnet(network, Number(cidr.slice(network.length + 1)), familyOf(network));
  }
  return list;
}

const unusable = rangeOf(unusableCidrs);
const specials = Object.entries(specialCidrs).map(([name, cidrs]) => ({
  name,
  list: rangeOf(cidrs),
}));

function specialNameOf(address: string): string | null {
  const family = familyOf(address);
  return specials.find(({ list }) => list.check(address, family))?.name ?? null;
}

/**
 * Position of the first CIDR that allows the address, -1 for none. A special address is allowed only by a CIDR
 * that starts in the same special range: `0.0.0.0/0` does not name 127.0.0.1, `127.64.0.0/16` does.
 */
function cidrIndex(address: string, cidrs: readonly string[]): number {
  const family = familyOf(address);
  if (unusable.check(address, family)) return -1;
  const special = specialNameOf(address);
  if (cidrs.length === 0) return special === null ? 0 : -1;
  return cidrs.findIndex((cidr) => {
    const network = networkOf(cidr);
    if (familyOf(network) !== family || !rangeOf([cidr]).check(address, family)) return false;
    return special === null || specialNameOf(network) === special;
  });
}

/** One spelling per address, so that the same address is the same text in every answer; `null` when it is none. */
function canonical(address: string): string | null {
  // A zone (`fe80::1%eth0`) and the IPv4-mapped form mean something only inside the guest.
  if (isIP(address) === 0 || address.includes('%') || /^::ffff:/i.test(address)) return null;
  return new SocketAddress({ address, family: familyOf(address) }).address;
}

/** Orders IPv4 by number; the text order of IPv6 happens to put global (`2…`) before unique local (`fd…`). */
function sortKeyOf(ip: string): string {
  return ip.includes(':')
    ? ip
    : ip
        .split('.')
        .map((octet) => octet.padStart(3, '0'))
        .join('.');
}

/**
 * Order of preference: CIDR as configured, then IPv4, then addresses with a network around them. A /32 beside
 * others is typically a virtual IP that may move to another VM; a lone /32 is some networks' normal DHCP answer.
 * IPv6 is exempt, because DHCPv6 leases are /128.
 */
function candidateOf(
  reported: AgentInterface['addresses'][number],
  policy: AddressPolicy,
): Candidate | null {
  const ip = canonical(reported.address);
  if (ip === null) return null;
  const family = familyOf(ip);
  if (policy.family !== 'any' && policy.family !== family) return null;
  const preference = cidrIndex(ip, policy.cidrs);
  if (preference < 0) return null;
  const hostOnly = family === 'ipv4' && reported.prefix === 32;
  const rank = preference * 4 + (family === 'ipv6' ? 2 : 0) + (hostOnly ? 1 : 0);
  return { ip, rank, sortKey: sortKeyOf(ip) };
}

/** Usable addresses of these interfaces, best first, each once: the agent's order is not kept from call to call. */
function candidatesOf(interfaces: readonly AgentInterface[], policy: AddressPolicy): Candidate[] {
  const best = new Map<string, Candidate>();
  for (const reported of interfaces.flatMap(({ addresses }) => addresses)) {
    const candidate = candidateOf(reported, policy);
    if (candidate === null) continue;
    const known = best.get(candidate.ip);
    if (known === undefined || candidate.rank < known.rank) best.set(candidate.ip, candidate);
  }
  return [...best.values()].toSorted(
    (left, right) => left.rank - right.rank || (left.sortKey < right.sortKey ? -1 : 1),
  );
}

/** Windows guests write MACs with dashes. */
function normalMac(mac: string | null): string | null {
  return mac === null ? null : mac.toLowerCase().replaceAll('-', ':');
}

/**
 * The Proxy's address among those the guest reports.
 * @param mac MAC of net0; all interfaces with it count, because a bridge and its port share one.
 * @param previous the address published so far: kept as long as it is among the best ones.
 */
export function chooseAddress(
  interfaces: readonly AgentInterface[],
  mac: string | null,
  policy: AddressPolicy,
  previous: string | null = null,
): AddressChoice {
  const wanted = normalMac(mac);
  const own = wanted === null ? [] : interfaces.filter((nic) => normalMac(nic.mac) === wanted);
  // With the NIC in sight its address is worth waiting for: docker0 has one before DHCP has answered.
  if (own.length > 0) return pick(candidatesOf(own, policy), previous);

  const others = candidatesOf(interfaces, policy);
  if (others.length > 1) {
    return { kind: 'ambiguous', candidates: others.map(({ ip }) => ip).toSorted() };
  }
  return pick(others, previous);
}

function pick(candidates: readonly Candidate[], previous: string | null): AddressChoice {
  const [first] = candidates;
  if (first === undefined) return { kind: 'none' };
  const kept = previous === null ? null : canonical(previous);
  const again = candidates.find(({ ip, rank }) => ip === kept && rank === first.rank);
  return { kind: 'address', ip: (again ?? first).ip };
}
