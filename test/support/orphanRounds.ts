/** Rounds of the collection of orphans, for tests of what they conclude. */
import assert from 'node:assert/strict';
import type {
  Census,
  CollectionReport,
  CollectionSettings,
  OrphanSeed,
  OrphanVm,
} from '../../workflows/contract/collection.ts';
import { emptyReport, judge, type Judgement } from '../../workflows/orphanRound.ts';

export const minute = 60_000;
export const start = Date.UTC(2026, 10, 29, 19, 30);
export const settings: CollectionSettings = {
  mode: 'delete',
  graceMs: 30 * minute,
  confirmAbsence: null,
  requestBoundMs: 30_000,
};

/** A VM of ours without a Proxy. */
export function orphan(vmid: number, changes: Partial<OrphanVm> = {}): OrphanVm {
  const uid = `${String(vmid).padStart(8, '0')}-1111-4111-8111-111111111111`;
  return {
    vmid,
    node: 'pve1',
    name: `proxy-p${vmid}-abcdef-${uid.slice(0, 8)}-000000`,
    owner: { namespace: 'egress', name: `p${vmid}`, uid },
    kept: null,
    ...changes,
  };
}

/** A seed without VM and Proxy. */
export function seed(name: string, changes: Partial<OrphanSeed> = {}): OrphanSeed {
  const vmName = `proxy-${name}-abcdef-11111111-000000`;
  return {
    node: 'pve1',
    storage: 'proxy-seeds',
    file: `${vmName}-seed.iso`,
    vmName,
    uidPrefix: '11111111',
    heldBy: null,
    examined: true,
    ...changes,
  };
}

/** What a round meets; what is not said is as usual. */
export interface Round {
  atMinute: number;
  orphans?: OrphanVm[];
  managed?: number;
  seeds?: OrphanSeed[];
  version?: string;
  settings?: Partial<CollectionSettings>;
  alarm?: string | null;
  shownAlarm?: string | null;
}

/** What a round concludes that remembers `before`. */
export function round(before: CollectionReport, fields: Round): Judgement {
  const inForce = { ...settings, ...fields.settings };
  const census: Census = {
    settings: inForce,
    managed: fields.managed ?? 20,
    orphans: fields.orphans ?? [],
    leftovers: [],
    listVersion: fields.version ?? '1000',
    alarm: fields.alarm ?? null,
    shownAlarm: fields.shownAlarm ?? null,
  };
  const seeds = { settings: inForce, orphans: fields.seeds ?? [], silentNodes: [] };
  return judge(before, { census, seeds }, start + fields.atMinute * minute);
}

/** Rounds one after the other, each remembering the one before. */
export function rounds(...all: Round[]): Judgement {
  const [first, ...others] = all;
  assert.ok(first);
  let last = round(emptyReport('pve', start), first);
  for (const next of others) last = round(last.report, next);
  return last;
}

/** VMIDs that are handed over. */
export const gone = (judged: Judgement): number[] => judged.vms.map(({ vmid }) => vmid);
