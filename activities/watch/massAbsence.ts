/** Too many VMs gone at once is rather a fault than a wish: the brake of design §7. No clock, no I/O. */
import { createHash } from 'node:crypto';
import type { AbsenceAlarm } from '../../api/providerHealth.ts';
import type { Listing } from './differences.ts';
import type { WatchedVm } from './watched.ts';

/** More than this share of a provider's VMs, and more than one, must not vanish in one round. */
const share = 0.1;

/**
 * Keeps the alarm of one provider. Braking is the safe side, so one round is enough to raise it; it ends when
 * its VMs are back, or nobody speaks of them any more.
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

  /** Takes in a listing that is known to be complete. */
  take(watched: readonly WatchedVm[], { rows, nodes }: Listing, nowMs: number): void {
    const listed = new Set(rows.map(({ vmid }) => vmid));
    const missing = new Set(watched.map(({ vmid }) => vmid).filter((vmid) => !listed.has(vmid)));
    const fresh = [...missing].filter((vmid) => !this.#missing.has(vmid));
    this.#missing = missing;
    if (this.#alarm !== null && !this.#alarm.vmids.some((vmid) => missing.has(vmid))) {
      this.#alarm = null;
    }
    const cause = causeOf(watched, fresh, new Set(nodes.map(({ node }) => node)));
    if (cause === null) return;
    const vmids = [...missing].toSorted((a, b) => a - b);
    this.#alarm = alarmOf(this.#provider, cause, vmids, nowMs);
  }
}

function causeOf(
  watched: readonly WatchedVm[],
  fresh: readonly number[],
  nodes: ReadonlySet<string>,
): string | null {
  if (fresh.length === 0) return null;
  if (!watched.some(({ node }) => nodes.has(node))) {
    const known = [...new Set(watched.map(({ node }) => node))].slice(0, 5).join(', ');
    return `none of the known nodes (${known}) is in the cluster: is another cluster behind the URL?`;
  }
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
