/** What a stop or destroy must know right before its request, and the refusals both share (design §3, §5). */
import type { StepContext, StepDeps } from '../deps.ts';
import { permanent, transient } from '../providerError.ts';
import type { ProxmoxApi, TaskRow, VmConfig, VmRow } from '../proxmox/api.ts';
import { ideSeedVolid } from '../vm/hardware.ts';
import { lowestVmid, parseMark, seedFileFor } from '../vm/identity.ts';
import { ownedBy } from '../vm/orphan.ts';
import { powerOf } from '../vm/state.ts';
import { identityFreshMs } from '../../workflows/contract/budgets.ts';
import type { PowerState } from '../../workflows/contract/steps.ts';
import type { StopVmInput } from '../../workflows/contract/removalSteps.ts';
import { proveCluster, proveListing } from './cluster.ts';
import { requireLiveLock, waitingForLock } from './locks.ts';
import { isRunning } from './tasks.ts';
import { readUntold } from './twins.ts';
import { claimOf, ownershipOf, readConfig, readStatus, vanished, vmAt } from './vms.ts';

/** A VM that is provably ours. Its identity was read at `readAtMs`, after everything else here. */
export interface RemovableVm {
  vmid: number;
  node: string;
  config: VmConfig;
  lock: string | null;
  power: PowerState;
  haManaged: boolean;
  /** Running tasks of this VM. */
  tasks: TaskRow[];
  readAtMs: number;
}

/** The VM's row in a fresh listing; `null` when the listing proves that no VM has this VMID. */
export async function findRow(
  deps: StepDeps,
  api: ProxmoxApi,
  { vm, purpose }: Pick<StopVmInput, 'vm'> & Partial<Pick<StopVmInput, 'purpose'>>,
): Promise<VmRow | null> {
  // Proxmox has no such VMID, so a status that was tampered with costs no request (cases.md 17 d).
  if (!Number.isSafeInteger(vm.vmid) || vm.vmid < lowestVmid) return null;
  const rows = await api.listVms();
  const row = rows.find(({ vmid }) => vmid === vm.vmid);
  // Whatever its row tells: a young one tells no name, and one at a used VMID that of its predecessor.
  if (row !== undefined && purpose === 'orphan') await refuseTwins(api, rows, row, vm.name);
  if (row?.name === vm.name) return row;
  // Another's VM there proves as little as none, when it is another cluster's.
  await proveListing(deps, api, vm.provider, `/vms/${vm.vmid}`);
  proveCluster(deps, await api.listNodes(), vm);
  return row ?? null;
}

/** The orphan is kept while another VM has its name, or may have it: also one that came since the census. */
async function refuseTwins(
  api: ProxmoxApi,
  rows: readonly VmRow[],
  row: VmRow,
  name: string,
): Promise<void> {
  const { vmid, node } = row;
  const others = rows.filter((other) => other.vmid !== vmid);
  const twin = others.find((other) => other.name === name);
  const untold = twin === undefined ? await readUntold(api, others) : null;
  const another = twin ?? untold?.named.get(name) ?? untold?.unread ?? null;
  if (another === null) return;
  const why = another === untold?.unread ? 'cannot be read, and may have its name' : 'has its name';
  throw transient('StillWanted', `${vmAt(row)} is kept: ${vmAt(another)} ${why}`, {
    vmid,
    node,
    goBack: true,
  });
}

/**
 * The VM as it is now; `null` when it is none of ours and is left alone: another name, no mark, a template or
 * container, a bare placeholder, a VM marked as retained. Throws Permanent `OwnershipConflict` or
 * `InstallationMismatch`, Transient `WaitingForLock`, `VmLeftover` or `VmVanished`.
 */
export async function readRemovable(
  deps: StepDeps,
  context: StepContext,
  api: ProxmoxApi,
  row: VmRow,
  input: StopVmInput,
): Promise<RemovableVm | null> {
  const { vmid, node } = row;
  if (row.type !== 'qemu') {
    leftAlone(context, row, 'container', row.name ?? null);
    return null;
  }
  const active = await api.listTasks(node, { activeOnly: true });
  const readAtMs = deps.clock.now();
  const config = await readConfig(api, row);
  const status = await readStatus(api, row);
  // The last answer before the request names the VM once more, in case it was swapped under us (cases.md 1 c).
  if (config.values.name !== undefined && status.name !== config.values.name) throw vanished(row);
  const lock = config.values.lock ?? null;
  if (!(await isOurs(deps, context, api, row, config, input))) return null;
  const tasks = active.filter((task) => isRunning(task) && isOf(task, vmid));
  const power = powerOf(status, lock);
  return { vmid, node, config, lock, power, haManaged: status.haManaged, tasks, readAtMs };
}

/** A clone's UPID carries its template's VMID, so a clone is never this VM's task. */
function isOf(task: TaskRow, vmid: number): boolean {
  return task.id === String(vmid) && task.type !== 'qmclone';
}

async function isOurs(
  deps: StepDeps,
  context: StepContext,
  api: ProxmoxApi,
  row: VmRow,
  config: VmConfig,
  { ref, vm, purpose }: StopVmInput,
): Promise<boolean> {
  const { vmid, node } = row;
  const { name, description, lock } = config.values;
  const verdict = ownershipOf(row, config, claimOf(deps, vm.provider, ref, vm.name));
  if (verdict.kind === 'otherUid') {
    const remedy = `rename or remove VM ${vmid} in Proxmox`;
    throw permanent(
      'OwnershipConflict',
      `${vmAt(row)} is named ${vm.name} but is marked with UID "${verdict.uid}", this Proxy has UID ${ref.uid}; it is left alone. To go on, ${remedy}`,
      { vmid, node, remedy },
    );
  }
  if (verdict.kind === 'otherInstallation') {
    const remedy = `start the operator with --also-installation ${verdict.installation}, or remove VM ${vmid} in Proxmox`;
    throw permanent(
      'InstallationMismatch',
      `${vmAt(row)} was made by installation "${verdict.installation}", not by "${deps.installation.id}"; it is left alone. To go on, ${remedy}`,
      { vmid, node, remedy },
    );
  }
  if (verdict.kind === 'nameless') await settlePlaceholder(api, row, lock ?? null);
  const retained = parseMark(description ?? '')?.managed === 'retained';
  const ours = verdict.kind === 'ours' && !retained;
  if (ours && purpose === 'orphan') requireCollectable(deps, row, config);
  if (ours) return true;
  leftAlone(context, row, retained ? 'retained' : verdict.kind, name ?? null);
  return false;
}

/** Nobody asks for an orphan to go, so its mark must leave no doubt (design §7). Throws Transient `StillWanted`. */
function requireCollectable({ installation }: StepDeps, row: VmRow, { values }: VmConfig): void {
  const { vmid, node, type } = row;
  const owned = ownedBy(installation, { vmid, node, type, values });
  if (owned !== null && owned.mark.deletionPolicy !== 'Retain') return;
  const why = owned === null ? 'its mark does not prove that it is ours' : 'its mark has Retain';
  throw transient('StillWanted', `${vmAt(row)} is kept: ${why}`, { vmid, node, goBack: true });
}

/** A placeholder of a task under way is waited for; one whose task died can be removed by root only. */
async function settlePlaceholder(api: ProxmoxApi, row: VmRow, lock: string | null): Promise<void> {
  if (lock === null) return;
  await requireLiveLock(api, row, lock);
  throw waitingForLock(row, lock);
}

/** The line that says why a VM at one of our VMIDs is not touched. */
export function leftAlone(
  context: StepContext,
  { vmid, node }: VmRow,
  verdict: string,
  vmName: string | null,
): void {
  const line =
    verdict === 'unmarked'
      ? 'proxmox vm carries no proxy-operator mark, left alone'
      : 'proxmox vm at this vmid is not ours, left alone';
  context.log.debug({ vmid, node, vmName, verdict }, line);
}

/**
 * `inherited`: nobody chose it for this VM. The write that attaches our seed clears an inherited protection, so on a
 * VM with our seed a person has set it.
 */
export function protectionOf(
  { config }: RemovableVm,
  input: StopVmInput,
): 'none' | 'inherited' | 'chosen' {
  if (config.values.protection !== '1') return 'none';
  const seedFile = `/${seedFileFor(input.vm.name)}`;
  const seeded = ideSeedVolid(config.values)?.endsWith(seedFile) === true;
  const untouched = input.protectionInherited || input.purpose === 'incomplete';
  return untouched && !seeded ? 'inherited' : 'chosen';
}

/** Transient, with the command for whoever protected the VM: what a person set is not cleared. */
export function deletionBlocked(at: RemovableVm): Error {
  const { vmid, node } = at;
  const remedy = `qm set ${vmid} --protection 0`;
  return transient(
    'DeletionBlocked',
    `${vmAt(at)} is protected in Proxmox; the deletion waits until the protection is gone: ${remedy}`,
    { vmid, node, remedy },
  );
}

/** An API whose writes leave only while the identity that was read is fresh. */
export function freshApi(
  deps: StepDeps,
  context: StepContext,
  provider: string,
  readAtMs: number,
): ProxmoxApi {
  const boundMs = deps.providers.config(provider).proxmox.requestTimeoutSeconds * 1_000;
  // The client sends a write only if its bound ends before `writesUntilMs`.
  const freshUntilMs = readAtMs + identityFreshMs + boundMs;
  const { call } = context;
  const writesUntilMs = Math.min(call.writesUntilMs, freshUntilMs);
  return deps.providers.api(provider, { ...call, writesUntilMs });
}
