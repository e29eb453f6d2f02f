/** Which VM is the Proxy's, or which VMID it gets: the decisions of `allocateVmid`. Pure. */
import { permanent, transient } from '../providerError.ts';
import type { Claim, Ownership } from './ownership.ts';
import { hasProcess, hibernationLock, isTaskLock, unlockRemedy } from './state.ts';
import { providerIdFor } from '../../workflows/contract/proxy.ts';
import type { AllocateVmidResult, PowerState } from '../../workflows/contract/steps.ts';

/** Whose the lock of a VM is. `undecided`: a clone that does not tell its VMID yet, or a node that is silent. */
export type LockHolder =
  { kind: 'task'; upid: string } | { kind: 'undecided' } | { kind: 'nobody' };

/** A VM that was read because it may be ours. */
export interface CandidateVm {
  vmid: number;
  node: string;
  /** This run recorded the VMID before it sent a clone. */
  recorded: boolean;
  /** Name and mark give the verdict; `unreadable`: its node does not answer. */
  verdict: Ownership | { kind: 'unreadable' };
  lock: string | null;
  /** Looked up for locks that belong to a task; `nobody` otherwise. */
  holder: LockHolder;
  power: PowerState;
  /** It has every disk of its template. */
  complete: boolean;
  seedAttached: boolean;
}

/** A row of the listing, as far as the selection needs it. */
export interface ListedVm {
  vmid: number;
  type: 'qemu' | 'lxc';
  name?: string;
  lock?: string;
}

/**
 * The rows whose config must be read: recorded VMIDs, names with our UID's digits, and those of `probed` whose row
 * does not tell (nameless, `VM n`, locked). A row's name is a hint, so no more than that (design §3).
 * `probed` are the candidates up to the first vacant one: a VM we forgot cannot be beyond it.
 */
export function rowsThatMatter<Row extends ListedVm>(
  rows: readonly Row[],
  wish: {
    uidPrefix: string;
    recorded: readonly number[];
    probed: readonly number[];
    avoid: readonly number[];
  },
): Row[] {
  const { uidPrefix, recorded, probed, avoid } = wish;
  return rows.filter(({ vmid, type, name, lock }) => {
    if (type !== 'qemu' || avoid.includes(vmid)) return false;
    if (recorded.includes(vmid) || name?.includes(`-${uidPrefix}-`)) return true;
    const untold = name === undefined || name === `VM ${vmid}` || lock !== undefined;
    return untold && probed.includes(vmid);
  });
}

/**
 * What the VMs already there mean for the Proxy; `null` when none of them is its own, so that a vacant VMID may
 * be taken. Throws Permanent `OwnershipConflict`, `DuplicateVm` or `InstallationMismatch`, Transient
 * `WaitingForLock` or `Unreachable`.
 */
export function settle(seen: readonly CandidateVm[], claim: Claim): AllocateVmidResult | null {
  refuseOtherInstallation(seen, claim);
  const ofOurName = seen.filter(({ verdict }) =>
    ['ours', 'unmarked', 'otherUid'].includes(verdict.kind),
  );
  const [only, ...others] = ofOurName;
  if (only !== undefined) {
    if (others.length > 0) throw duplicate(ofOurName, claim);
    // One this run knows nothing of may be a restored backup of the VM it recorded, whose node is silent.
    const recorded = seen.find((vm) => vm.recorded && isUnreadable(vm));
    if (recorded !== undefined && !only.recorded) settleUntold(recorded);
    return settleOne(only, claim);
  }
  for (const vm of recordedFirst(seen)) {
    const result = settleUntold(vm);
    if (result !== null) return result;
  }
  return null;
}

function refuseOtherInstallation(seen: readonly CandidateVm[], claim: Claim): void {
  for (const { vmid, node, verdict } of seen) {
    if (verdict.kind !== 'otherInstallation') continue;
    const remedy = `start the operator with --also-installation ${verdict.installation} to take it over, or remove VM ${vmid}`;
    throw permanent(
      'InstallationMismatch',
      `VM ${vmid} on ${node} belongs to this Proxy (UID ${claim.uid}) but was made by installation "${verdict.installation}", not by "${claim.installationId}"; ${remedy}`,
      { vmid, node, remedy },
    );
  }
}

function settleOne(vm: CandidateVm, claim: Claim): AllocateVmidResult | null {
  const { vmid, node, verdict } = vm;
  if (verdict.kind === 'ours') return settleOurs(vm);
  const remedy = `rename or remove VM ${vmid}; the operator never takes over a VM it did not make`;
  const found =
    verdict.kind === 'otherUid' ? `is marked with UID "${verdict.uid}"` : 'carries no mark';
  throw permanent(
    'OwnershipConflict',
    `VM ${vmid} on ${node} is named ${claim.vmName} but ${found}; this Proxy has UID ${claim.uid}; ${remedy}`,
    { vmid, node, remedy },
  );
}

/**
 * Two of one name: a person decides which goes. A run records one VMID at a time, so no second try of its own can be among
 * them; a VMID it gave up is not looked at here, and goes as a leftover (design §3, §5).
 */
function duplicate(twins: readonly CandidateVm[], claim: Claim): Error {
  const named = twins.map(({ vmid, node }) => `${providerIdFor(vmid, claim.vmName)} on ${node}`);
  const remedy = `remove all but one: ${twins.map(({ vmid }) => `qm destroy ${vmid}`).join(' or ')}`;
  return permanent(
    'DuplicateVm',
    `${twins.length} VMs are named ${claim.vmName}: ${named.join(', ')}; ${remedy}`,
    { remedy },
  );
}

function settleOurs(vm: CandidateVm): AllocateVmidResult {
  const { vmid, node, lock, power, complete, seedAttached } = vm;
  const locked = settleTaskLock(vm);
  if (locked !== null) return locked;
  // What runs needs no write, so a backup or a migration is no reason to wait.
  if (lock !== null && lock !== hibernationLock && !hasProcess(power)) throw waitingForLock(vm);
  if (power === 'stopped' && !complete) return { kind: 'incomplete', vmid, node };
  return { kind: 'ours', vmid, node, power, seedAttached };
}

function isUnreadable({ verdict }: CandidateVm): boolean {
  return verdict.kind === 'unreadable';
}

/** A VM without a name: a clone under way, or what is left of one. */
function settleUntold(vm: CandidateVm): AllocateVmidResult | null {
  if (isUnreadable(vm)) {
    const { vmid, node } = vm;
    const remedy = `bring node ${node} back (pvecm status)`;
    throw transient(
      'Unreachable',
      `VM ${vmid} may be this Proxy's, and its node ${node} does not answer; ${remedy}`,
      { scope: 'provider', vmid, node, remedy },
    );
  }
  if (vm.verdict.kind !== 'nameless' || vm.lock === null) return null;
  // A dead placeholder will never get a name: it is nobody's unless we recorded it, and the VMID is just taken.
  const dead = isTaskLock(vm.lock) && vm.holder.kind === 'nobody';
  if (dead && !vm.recorded) return null;
  const cloningForOther = vm.holder.kind === 'task' && !vm.recorded;
  if (cloningForOther) throw waitingForLock(vm);
  return settleTaskLock(vm) ?? throwing(waitingForLock(vm));
}

/** `null` when the lock is none of a task's. */
function settleTaskLock(vm: CandidateVm): AllocateVmidResult | null {
  const { vmid, node, lock, holder } = vm;
  if (lock === null || !isTaskLock(lock)) return null;
  if (holder.kind === 'nobody') {
    return { kind: 'stuck', vmid, node, lock, remedy: unlockRemedy(vmid, node) };
  }
  if (holder.kind === 'task' && lock === 'clone') {
    return { kind: 'cloning', vmid, node, upid: holder.upid };
  }
  throw waitingForLock(vm);
}

function waitingForLock({ vmid, node, lock, holder }: CandidateVm): Error {
  const by = holder.kind === 'task' ? ` by task ${holder.upid}` : '';
  return transient(
    'WaitingForLock',
    `VM ${vmid} on ${node} is locked (${lock ?? ''})${by}; waiting`,
    {
      vmid,
      node,
      ...(lock === null ? {} : { lock }),
      ...(holder.kind === 'task' ? { upid: holder.upid } : {}),
    },
  );
}

function throwing(error: Error): never {
  throw error;
}

function recordedFirst(seen: readonly CandidateVm[]): CandidateVm[] {
  return [...seen.filter(({ recorded }) => recorded), ...seen.filter(({ recorded }) => !recorded)];
}

/**
 * The first candidate that is neither listed, nor given up, nor cooling, nor being cloned to (`null`: none), and
 * the candidates before it.
 */
export function probe(
  candidates: readonly number[],
  taken: readonly ReadonlySet<number>[],
): { vacant: number | null; probed: number[] } {
  const index = candidates.findIndex((vmid) => !taken.some((set) => set.has(vmid)));
  if (index < 0) return { vacant: null, probed: [...candidates] };
  return { vacant: candidates[index] ?? null, probed: candidates.slice(0, index) };
}
