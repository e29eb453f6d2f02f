/** Too many VMs gone at once is rather a fault than a wish: the brake of design §7. No clock, no I/O. */
import { createHash } from 'node:crypto';
import type { AbsenceAlarm } from '../../api/providerHealth.ts';
import type { Listing } from './differences.ts';
import type { WatchedVm } from './watched.ts';

/** More than this share of a provider's VMs, and more than one, must not vanish in one round. */
const share = 0.1;

/**
 * Keeps the alarm of one provider. Braking is the safe side, so one round is enough to raise it. It ends when all its
 * VMIDs are listed again; that their Proxies are deleted proves nothing. Once a person has confirmed it, it ends when no
 * Proxy has one of its VMs any more.
 */
export class MassAbsence {
  readonly #provider: string;
  /** VMIDs missing in an earlier round. */
  #missing: Set<number>;
  #alarm: AbsenceAlarm | null;

  /** `alarm`: what an earlier attempt raised. */
  constructor(provider: string, alarm: AbsenceAlarm | null) {
    this.#provider = provider;
    this.#alarm = alarm;
    this.#missing = new Set(alarm?.vmids);
  }

  alarm(): AbsenceAlarm | null {
    return this.#alarm;
  }

  /**
   * Takes in a listing that is known to be complete. `leaving`: VMs of Proxies under deletion. That they are missing is
   * what was asked for, unless the cluster has none of the known nodes.
   */
  take(
    { watched, leaving }: { watched: readonly WatchedVm[]; leaving: readonly WatchedVm[] },
    { rows, nodes }: Listing,
    { nowMs, confirmed }: { nowMs: number; confirmed: string | null },
  ): void {
    const listed = new Set(rows.map(({ vmid }) => vmid));
    const all = [...watched, ...leaving];
    const foreign = isForeign(all, new Set(nodes.map(({ node }) => node)));
    const counted = foreign ? all : watched;
    const missing = new Set(counted.map(({ vmid }) => vmid).filter((vmid) => !listed.has(vmid)));
    const fresh = [...missing].filter((vmid) => !this.#missing.has(vmid));
    this.#missing = missing;
    const before = this.#alarm;
    const open = before === null || before.id === confirmed ? [] : before.vmids;
    if (before !== null && !foreign) {
      const back = before.vmids.length > 0 && before.vmids.every((vmid) => listed.has(vmid));
      const over = before.id === confirmed && !before.vmids.some((vmid) => missing.has(vmid));
      if (back || over) this.#alarm = null;
    }
    const cause = foreign ? foreignCause(all, fresh) : causeOf(watched, fresh);
    if (cause === null) return;
    // What an alarm that nobody confirmed names stays named, whether or not a Proxy still speaks of it.
    const unseen = open.filter((vmid) => !listed.has(vmid));
    const vmids = [...new Set([...missing, ...unseen])].toSorted((a, b) => a - b);
    this.#alarm = alarmOf(this.#provider, cause, vmids, nowMs);
  }
}

/** Whether VMs are known, and none of their nodes. */
function isForeign(known: readonly WatchedVm[], nodes: ReadonlySet<string>): boolean {
  return known.length > 0 && !known.some(({ node }) => nodes.has(node));
}

function foreignCause(all: readonly WatchedVm[], fresh: readonly number[]): string | null {
  if (fresh.length === 0) return null;
  const known = [...new Set(all.map(({ node }) => node))].slice(0, 5).join(', ');
  return `none of the known nodes (${known}) is in the cluster: is another cluster behind the URL?`;
}

function causeOf(watched: readonly WatchedVm[], fresh: readonly number[]): string | null {
  if (fresh.length === 0) return null;
  const all = fresh.length >= 2 && fresh.length === watched.length;
  if (!all && fresh.length <= Math.max(1, watched.length * share)) return null;
  return `${fresh.length} of ${watched.length} VMs are missing from one listing`;
}

function alarmOf(provider: string, cause: string, vmids: number[], nowMs: number): AbsenceAlarm {
  const since = new Date(nowMs).toISOString().replace(/\.\d+Z$/, 'Z');
  const text = [provider, since, ...vmids].join('|');
  const id = createHash('sha256').update(text, 'utf8').digest('hex').slice(0, 8);
  return { id, since, message: cause, vmids };
}
