/** Which orphans are collected: what a round saw, held against what the rounds before remember. Pure (design §7). */
import type {
  Census,
  CollectionAlarm,
  CollectionReport,
  CollectionSettings,
  ListSeedsResult,
  OrphanSeed,
  OrphanVm,
  Remembered,
  RememberedSeed,
  RememberedVm,
} from './contract/collection.ts';
import { orphansUnservedMs } from './contract/budgets.ts';
import { isUnserved } from './contract/errors.ts';
import type { StepFailure } from './failures.ts';

/** Seeds deleted in one round: each is a write and, before it, a request per VM. */
const maxSeedsPerRound = 20;
/** Orphans a report names; what is beyond waits until these are gone. */
const maxRemembered = 500;

/** The report of a round, and what it lets go now. */
export interface Judgement {
  report: CollectionReport;
  /** For the run of their owners. */
  vms: RememberedVm[];
  seeds: RememberedSeed[];
}

/** What a round remembers that is the first of its Schedule. */
export function emptyReport(provider: string, nowMs: number): CollectionReport {
  return {
    provider,
    at: new Date(nowMs).toISOString(),
    mode: null,
    graceMs: 0,
    problem: null,
    alarm: null,
    vms: [],
    seeds: [],
    leftovers: [],
    newestVersion: '0',
    unservedSinceMs: null,
  };
}

/** What the round before left, if this run was told: of another provider, or malformed, it is nothing. */
export function remembered(last: unknown, provider: string, nowMs: number): CollectionReport {
  const fresh = emptyReport(provider, nowMs);
  if (typeof last !== 'object' || last === null) return fresh;
  if (!('provider' in last) || last.provider !== provider) return fresh;
  return { ...fresh, ...last, provider, at: fresh.at, problem: null };
}

/** `<node> <file>` of the seeds that are examined in this round, those first that were not for longest. */
export function dueSeeds({ seeds, graceMs }: CollectionReport, nowMs: number): string[] {
  return seeds
    .filter(({ firstSeenMs }) => nowMs - firstSeenMs >= graceMs)
    .toSorted((one, other) => (one.examinedAtMs ?? 0) - (other.examinedAtMs ?? 0))
    .slice(0, maxSeedsPerRound)
    .map(seedKey);
}

/** VMIDs at which the rounds before saw VMs of a UID, by its first 8 digits. */
export function knownVmids({ vms }: CollectionReport): Record<string, number[]> {
  const known: Record<string, number[]> = {};
  for (const { vmid, owner } of vms) {
    const prefix = owner.uid.slice(0, 8).toLowerCase();
    known[prefix] = [...(known[prefix] ?? []), vmid];
  }
  return known;
}

/**
 * One VM alone may be an orphan, and of many one in ten; more at a time is rather a Kubernetes that lost its objects,
 * or the wrong one (design §7).
 */
export function isMass(orphans: number, managed: number): boolean {
  if (orphans >= 2 && orphans >= managed) return true;
  return orphans > Math.max(1, managed / 10);
}

/** The judgement of a round in which everything could be read. */
export function judge(
  before: CollectionReport,
  found: { census: Census; seeds: ListSeedsResult | StepFailure },
  nowMs: number,
): Judgement {
  const { census } = found;
  const { settings, listVersion } = census;
  const raised = before.alarm ?? shownAlarmOf(before, census);
  const confirmed = raised !== null && settings.confirmAbsence === raised.id;
  const seen = census.orphans.slice(0, maxRemembered).map((vm) => rememberVm(before, vm, nowMs));
  if (confirmed) confirmAll(seen, raised);
  const standing = confirmed ? null : raised;
  const newest = confirmed && raised?.kind === 'ClusterRolledBack' ? '0' : before.newestVersion; // prettier-ignore
  const alarm = alarmOf(standing, newest, seen, census, nowMs);
  const held = holdOf(alarm, census);
  const vms = seen.map((vm) => ({ ...vm, outlook: outlookOf(vm, vm.kept, settings, held, nowMs) }));
  const listed = 'orphans' in found.seeds ? found.seeds.orphans : null;
  const problem = 'orphans' in found.seeds ? null : problemOf(found.seeds);
  const seeds = listed?.slice(0, maxRemembered).map((seed) => {
    const known = rememberSeed(before, seed, nowMs);
    const outlook = outlookOf(known, seed.heldBy, settings, held, nowMs);
    return { ...known, outlook: outlook === goes && !seed.examined ? examinedNext : outlook };
  });
  return {
    report: {
      provider: before.provider,
      at: new Date(nowMs).toISOString(),
      mode: settings.mode,
      graceMs: settings.graceMs,
      problem,
      alarm,
      vms,
      seeds: seeds ?? before.seeds,
      leftovers: census.leftovers,
      newestVersion: isOlder(listVersion, newest) ? newest : listVersion,
      unservedSinceMs: null,
    },
    vms: vms.filter(({ outlook }) => outlook === goes),
    seeds: (seeds ?? []).filter(({ outlook }) => outlook === goes),
  };
}

/** `ended`: so long that the Schedule is to rest. What it remembers stays, so the time begins anew when it wakes. */
export function unservedOf(
  before: CollectionReport,
  reason: StepFailure['facts']['reason'],
  nowMs: number,
): { unservedSinceMs: number | null; ended: boolean } {
  if (!isUnserved(reason)) return { unservedSinceMs: null, ended: false };
  const sinceMs = before.unservedSinceMs ?? nowMs;
  const ended = nowMs - sinceMs >= orphansUnservedMs;
  return { unservedSinceMs: ended ? null : sinceMs, ended };
}

/** A failure as the report of a round shows it. */
export function problemOf({ facts, message }: StepFailure): string {
  return `${facts.reason}: ${message}`;
}

/** Whether leftovers may be removed in this round. */
export function mayClear({ mode, alarm }: CollectionReport, census: Census): boolean {
  return mode === 'delete' && alarm === null && census.alarm === null;
}

const goes = 'is removed now';
const examinedNext = 'is removed when the next round finds no VM that needs it';

function outlookOf(
  { firstSeenMs, rounds }: Remembered,
  kept: string | null,
  { mode, graceMs }: CollectionSettings,
  held: string | null,
  nowMs: number,
): string {
  if (kept !== null) return `is kept: ${kept}`;
  if (mode === 'report') return 'is only reported (gc.mode: report)';
  if (held !== null) return held;
  const dueMs = firstSeenMs + graceMs;
  if (nowMs < dueMs) return `is removed after ${new Date(dueMs).toISOString()}`;
  return rounds < 2 ? 'is removed when the next round sees it again' : goes;
}

function holdOf(alarm: CollectionAlarm | null, census: Census): string | null {
  const id = alarm?.id ?? census.alarm;
  return id === null ? null : `is held by alarm ${id}`;
}

/** Every orphan that somebody could remove and no person has spoken about counts. */
function alarmOf(
  standing: CollectionAlarm | null,
  newest: string,
  seen: readonly RememberedVm[],
  { listVersion, managed }: Census,
  nowMs: number,
): CollectionAlarm | null {
  if (standing?.kind === 'ClusterRolledBack') return standing;
  if (isOlder(listVersion, newest)) return rolledBack(listVersion, newest, nowMs);
  const vmids = seen.filter(({ kept, confirmed }) => kept === null && !confirmed).map(({ vmid }) => vmid); // prettier-ignore
  if (
    standing !== null &&
    vmids.length > 0 &&
    vmids.every((vmid) => standing.vmids.includes(vmid))
  ) {
    return standing;
  }
  const known = standing !== null && vmids.length > 0;
  const others = managed - seen.filter((vm) => vm.kept === null && vm.confirmed).length;
  if (!known && !isMass(vmids.length, others)) return null;
  const message = `${vmids.length} of ${others} VMs of the operator have no Proxy: ${shortList(vmids)}`;
  return { id: `orphans-${stamp(nowMs)}`, kind: 'MassAbsence', message, vmids };
}

/**
 * The alarm that the ProviderHealth shows, for a round that remembers none before: the Schedule was deleted. Which VMs it
 * was about is not known any more, so those that are orphans now get an alarm of their own.
 */
function shownAlarmOf({ mode }: CollectionReport, { shownAlarm }: Census): CollectionAlarm | null {
  if (mode !== null || typeof shownAlarm !== 'string') return null;
  const kind = shownAlarm.startsWith('rollback-') ? 'ClusterRolledBack' : 'MassAbsence';
  const message = `raised by the rounds of a Schedule that was deleted since: ${kind}`;
  return { id: shownAlarm, kind, message, vmids: [] };
}

function rolledBack(listVersion: string, newest: string, nowMs: number): CollectionAlarm {
  return {
    id: `rollback-${stamp(nowMs)}`,
    kind: 'ClusterRolledBack',
    message: `Kubernetes answered with resourceVersion ${listVersion} after ${newest}: it was restored from a backup, or is another cluster`,
    vmids: [],
  };
}

function confirmAll(seen: RememberedVm[], alarm: CollectionAlarm | null): void {
  for (const vm of seen) vm.confirmed ||= alarm?.vmids.includes(vm.vmid) === true;
}

/** Another name or owner at the same VMID is another VM. */
function rememberVm(before: CollectionReport, vm: OrphanVm, nowMs: number): RememberedVm {
  const known = before.vms.find(
    ({ vmid, name, owner }) => vmid === vm.vmid && name === vm.name && owner.uid === vm.owner.uid,
  );
  return { ...vm, ...again(known, nowMs), confirmed: known?.confirmed ?? false };
}

function rememberSeed(before: CollectionReport, seed: OrphanSeed, nowMs: number): RememberedSeed {
  const key = seedKey(seed);
  const known = before.seeds.find((candidate) => seedKey(candidate) === key);
  const examinedAtMs = seed.examined ? nowMs : (known?.examinedAtMs ?? 0);
  return { ...seed, ...again(known, nowMs), examinedAtMs };
}

function again(known: Remembered | undefined, nowMs: number): Remembered {
  if (known === undefined) return { firstSeenMs: nowMs, rounds: 1, outlook: '' };
  return { firstSeenMs: known.firstSeenMs, rounds: known.rounds + 1, outlook: '' };
}

/** One seed on one node. */
export function seedKey({ node, file }: { node: string; file: string }): string {
  return `${node} ${file}`;
}

/** Versions are decimal numbers of any length (Kubernetes 1.35); what is none tells nothing. */
function isOlder(version: string, than: string): boolean {
  const numbers = /^\d+$/;
  if (!numbers.test(version) || !numbers.test(than)) return false;
  return BigInt(version) < BigInt(than);
}

/** `20261129T193000Z`: an id that can be typed. */
function stamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z').replaceAll(/[-:]/g, ''); // prettier-ignore
}

function shortList(vmids: readonly number[]): string {
  const shown = vmids.slice(0, 10).join(', ');
  return vmids.length > 10 ? `${shown}, …` : shown;
}
