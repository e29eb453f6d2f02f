/** Whose VM is not as its Proxy's status says: the comparison behind `observed`. No clock, no I/O. */
import { hasOurTag } from '../vm/hardware.ts';
import { hibernationLock } from '../vm/state.ts';
import type { NodeRow, VmRow } from '../proxmox/api.ts';
import { observedRetellMs } from '../../workflows/contract/budgets.ts';
import type { VmPower } from '../../workflows/contract/proxy.ts';
import type { WatchedVm } from './watched.ts';

/** One round: what the cluster lists. */
export interface Listing {
  rows: readonly VmRow[];
  nodes: readonly NodeRow[];
}

/** Rows go backwards for some seconds (pve/cluster.md 7), so a difference counts when seen so many rounds in a row. */
const roundsToBelieve = 2;

interface Memory {
  difference: string;
  rounds: number;
  toldMs: number | null;
  tellings: number;
}

/** Remembers what was seen and told; starts from the statuses, so a restart tells nothing that is known. */
export class Differences {
  readonly #seen = new Map<string, Memory>();

  /** The VMs whose Proxies are to be told now: once per difference, and rarely again while the status shows no effect. */
  take(watched: readonly WatchedVm[], listing: Listing, nowMs: number): WatchedVm[] {
    const rows = new Map(listing.rows.map((row) => [row.vmid, row]));
    const nodes = new Map(listing.nodes.map(({ node, status }) => [node, status]));
    const keys = new Set(watched.map(({ key }) => key));
    for (const key of this.#seen.keys()) if (!keys.has(key)) this.#seen.delete(key);
    return watched.filter((vm) => {
      const difference = differenceOf(vm, rows.get(vm.vmid), nodes);
      return this.#isNews(vm.key, difference, nowMs);
    });
  }

  /** The telling failed: it is news again in the next round. */
  untold(vm: WatchedVm): void {
    const memory = this.#seen.get(vm.key);
    if (memory) memory.toldMs = null;
  }

  #isNews(key: string, difference: string | null, nowMs: number): boolean {
    if (difference === null) {
      this.#seen.delete(key);
      return false;
    }
    const known = this.#seen.get(key);
    const memory =
      known?.difference === difference
        ? known
        : { difference, rounds: 0, toldMs: null, tellings: 0 };
    this.#seen.set(key, memory);
    memory.rounds += 1;
    if (memory.rounds < roundsToBelieve) return false;
    const { toldMs, tellings } = memory;
    if (toldMs !== null && nowMs - toldMs < observedRetellMs(tellings)) return false;
    memory.toldMs = nowMs;
    memory.tellings += 1;
    return true;
  }
}

/**
 * What differs, as a short text; `null` when nothing does, or nobody can tell. Rows of a dead node read `running` for
 * five minutes, so the node is asked first (pve/cluster.md 20).
 */
export function differenceOf(
  vm: WatchedVm,
  row: VmRow | undefined,
  nodes: ReadonlyMap<string, NodeRow['status']>,
): string | null {
  if (row === undefined) return 'gone';
  if (isAnotherVm(vm, row)) return `another VM (${row.name ?? row.type})`;
  if (nodes.get(row.node) === 'offline') return vm.power === 'unreachable' ? null : 'unreachable';
  if (row.node !== vm.node) return `on ${row.node}`;
  const power = powerOfRow(row);
  if (power === null) return null;
  if (power !== vm.power) return power;
  return hasOurTag(row.tags) ? null : 'untagged';
}

/** A row without a name, or with the one Proxmox gives it for want of another, says nothing (pve/README 21). */
function isAnotherVm(vm: WatchedVm, { type, name, vmid, template }: VmRow): boolean {
  if (type !== 'qemu' || template === true) return true;
  return name !== undefined && name !== `VM ${vmid}` && name !== vm.name;
}

/** `null` while nobody can tell: no statistics, or a lock under which a VM may stand still for a while. */
function powerOfRow({ status, lock }: VmRow): VmPower | null {
  if (status === 'unknown') return null;
  if (lock === hibernationLock) return status === 'stopped' ? 'hibernated' : null;
  if (lock !== undefined) return null;
  if (status === 'stopped' || status === 'paused' || status === 'io-error') return status;
  return 'running';
}
