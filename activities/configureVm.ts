/** The one config write of the specification: size, agent, tags, seed on ide2, net0, and the mark kept current. */
import type { Step, StepContext, StepDeps } from './deps.ts';
import { lockHolder, waitingForLock } from './facts/locks.ts';
import { markFor } from './facts/marks.ts';
import { findRow, leftAlone } from './facts/removal.ts';
import { claimOf, findOurVm, ownershipOf, readConfig, vmAt, type OurVm } from './facts/vms.ts';
import { transient } from './providerError.ts';
import type { ProxmoxApi, VmConfig, VmRow } from './proxmox/api.ts';
import { agentIsEnabled, configChanges, vmTag } from './vm/hardware.ts';
import { mergeMark, parseMark, seedVolidFor, type Mark } from './vm/identity.ts';
import { hasProcess } from './vm/state.ts';
import type {
  ConfigureForStartInput,
  ConfigureVmInput,
  ConfigureVmResult,
  MarkVmInput,
  MendVmInput,
} from '../workflows/contract/steps.ts';

/** Keys to set and to remove; a write without any is not sent. */
interface Changes {
  set: Record<string, string>;
  delete: string[];
}

/**
 * One PUT with the keys that differ, tied to the config that was read by its digest. A running VM gets mark and tag
 * only, and so does any VM whose mark is to be kept current. Throws Transient `UploadNotConfirmed` (goBack),
 * `WaitingForLock`, `ConfigChanged`.
 */
export const configureVm: Step<ConfigureVmInput, ConfigureVmResult> = (deps, context, input) =>
  input.kind === 'start' ? configure(deps, context, input) : label(deps, context, input);

async function configure(
  deps: StepDeps,
  context: StepContext,
  input: ConfigureForStartInput,
): Promise<ConfigureVmResult> {
  const api = deps.providers.api(input.plan.provider, context.call);
  const vm = await findOurVm(deps, api, input.ref, input.vm);
  const running = hasProcess(vm.power);
  // A locked VM that runs is left as it is: what is missing is a label, not worth waiting for a backup.
  if (running && vm.lock !== null) return { changed: [], found: true };
  requireUnlocked(vm);
  if (!running) await confirmSeed(api, vm, input);
  const changes = running
    ? labelChanges(vm.config, markOf(deps, vm.config, input))
    : everythingOf(deps, vm, input);
  return write(context, api, vm, vm.config, changes);
}

/** A VM that is proven gone, or none of ours, has no mark to keep: it is left alone. A lock is waited for, but see `staysUnmarked`. */
async function label(
  deps: StepDeps,
  context: StepContext,
  input: MarkVmInput | MendVmInput,
): Promise<ConfigureVmResult> {
  const { ref, vm } = input;
  const api = deps.providers.api(vm.provider, context.call);
  const row = await findRow(deps, api, input);
  if (row === null) return { changed: [], found: false };
  if (row.type !== 'qemu') {
    leftAlone(context, row, 'container', row.name ?? null);
    return { changed: [], found: false };
  }
  const config = await readConfig(api, row);
  const { name, description, lock } = config.values;
  const { kind } = ownershipOf(row, config, claimOf(deps, vm.provider, ref, vm.name));
  const known = parseMark(description ?? '');
  if (kind !== 'ours' || known === null) {
    leftAlone(context, row, kind, name ?? null);
    return { changed: [], found: false };
  }
  const { vmid, node } = row;
  if (lock !== undefined && (await staysUnmarked(api, row, lock, known, input))) {
    return { changed: [], found: true, unmarkedFor: lock };
  }
  requireUnlocked({ vmid, node, lock: lock ?? null });
  const wanted: Mark = {
    ...known,
    ...(input.kind === 'mark' ? policyOf(input) : {}),
    uid: ref.uid,
    installation: deps.installation.id,
    proxy: `${ref.namespace}/${ref.name}`,
  };
  const changes = labelChanges(config, wanted);
  if (input.kind === 'mend') Object.assign(changes.set, mending(config, input));
  return write(context, api, row, config, changes);
}

/**
 * No config write gets past a lock, and one that no task holds may stay for ever. A mark that says `Retain` already keeps
 * the VM from the collection of orphans, so nothing waits for the rest of it then.
 */
async function staysUnmarked(
  api: ProxmoxApi,
  row: VmRow,
  lock: string,
  { deletionPolicy }: Mark,
  input: MarkVmInput | MendVmInput,
): Promise<boolean> {
  if (input.kind !== 'mark' || !input.retained || deletionPolicy !== 'Retain') return false;
  return (await lockHolder(api, row, lock)).kind === 'nobody';
}

function policyOf({ retained, deletionPolicy }: MarkVmInput): Partial<Mark> {
  return { managed: retained ? 'retained' : 'true', deletionPolicy };
}

/** A VM that runs takes in the agent option at its next start; until then it is pending (pve/README 28). */
function mending({ values }: VmConfig, { emptyDrive }: MendVmInput): Record<string, string> {
  return {
    ...(agentIsEnabled(values.agent) ? {} : { agent: '1' }),
    ...(emptyDrive ? { ide2: 'none,media=cdrom' } : {}),
  };
}

async function write(
  context: StepContext,
  api: ProxmoxApi,
  { node, vmid }: { node: string; vmid: number },
  { digest }: VmConfig,
  changes: Changes,
): Promise<ConfigureVmResult> {
  const changed = [...Object.keys(changes.set), ...changes.delete];
  if (changed.length === 0) return { changed, found: true };
  context.heartbeat();
  await api.setVmConfig(node, vmid, changes.set, { delete: changes.delete, digest });
  return { changed, found: true };
}

function requireUnlocked({ vmid, node, lock }: Pick<OurVm, 'vmid' | 'node' | 'lock'>): void {
  if (lock !== null) throw waitingForLock({ vmid, node }, lock, { goBack: true });
}

/**
 * The task's OK is no proof: an upload to another node can lose its file without a word (pve/cluster.md 8), so the
 * node's own listing must show it, with its size.
 */
async function confirmSeed(
  api: ProxmoxApi,
  { node, vmid }: OurVm,
  { plan, seedBytes }: ConfigureForStartInput,
): Promise<void> {
  const volid = seedVolidFor(plan.isoStorage, plan.seedFile);
  const listed = (await api.listIsos(node, plan.isoStorage)).find((iso) => iso.volid === volid);
  if (listed?.size === seedBytes) return;
  const found = listed === undefined ? 'is not listed' : `has ${listed.size} bytes`;
  throw transient(
    'UploadNotConfirmed',
    `seed ${volid} of ${vmAt({ vmid, node })} ${found} on ${node} instead of having ${seedBytes} bytes; uploading again`,
    { node, vmid, storage: plan.isoStorage, goBack: true },
  );
}

function everythingOf(deps: StepDeps, vm: OurVm, input: ConfigureForStartInput): Changes {
  const { plan, clearProtection } = input;
  const { cores, memoryMiB, bridge, vlanTag } = plan;
  const isoVolid = seedVolidFor(plan.isoStorage, plan.seedFile);
  const wish = { cores, memoryMiB, isoVolid, bridge, vlanTag, clearProtection };
  const changes = configChanges(vm.config.values, wish);
  const description = descriptionOf(vm.config, markOf(deps, vm.config, input));
  return { ...changes, set: { ...changes.set, ...description } };
}

/** Description and tags are applied at once, whatever the VM does (api-facts 5.12). */
function labelChanges(config: VmConfig, wanted: Mark): Changes {
  const tags = (config.values.tags ?? '').split(/[\s,;]+/).filter((tag) => tag !== '');
  // Tags people added since the start stay.
  const tag = tags.includes(vmTag) ? {} : { tags: [...tags, vmTag].join(';') };
  return { set: { ...tag, ...descriptionOf(config, wanted) }, delete: [] };
}

function markOf(deps: StepDeps, config: VmConfig, { ref, plan }: ConfigureForStartInput): Mark {
  const createdAt = parseMark(config.values.description ?? '')?.createdAt ?? null;
  return markFor(deps, ref, plan, createdAt);
}

/** Proxmox cuts blanks at the end of a description, so trimmed texts are compared (pve/README 20). */
function descriptionOf({ values }: VmConfig, wanted: Mark): { description?: string } {
  const current = values.description ?? '';
  const description = mergeMark(current, wanted);
  return description.trimEnd() === current.trimEnd() ? {} : { description };
}
