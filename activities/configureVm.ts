/** The one config write of the specification: size, agent, tags, seed on ide2, net0, and the mark kept current. */
import type { Step, StepDeps } from './deps.ts';
import { markFor } from './facts/marks.ts';
import { findOurVm, vmAt, type OurVm } from './facts/vms.ts';
import { transient } from './providerError.ts';
import type { ProxmoxApi } from './proxmox/api.ts';
import { configChanges, vmTag } from './vm/hardware.ts';
import { mergeMark, parseMark, seedVolidFor } from './vm/identity.ts';
import { hasProcess } from './vm/state.ts';
import type { ConfigureVmInput, ConfigureVmResult } from '../workflows/contract/steps.ts';

/** Limit of a config write that is not sent because of it: nothing differs. */
interface Changes {
  set: Record<string, string>;
  delete: string[];
}

/**
 * One PUT with the keys that differ, tied to the config that was read by its digest. A running VM gets mark and tag
 * only. Throws Transient `UploadNotConfirmed` (goBack), `WaitingForLock`, `ConfigChanged`.
 */
export const configureVm: Step<ConfigureVmInput, ConfigureVmResult> = async (
  deps,
  context,
  input,
) => {
  const api = deps.providers.api(input.plan.provider, context.call);
  const vm = await findOurVm(deps, api, input.ref, input.vm);
  const running = hasProcess(vm.power);
  // A locked VM that runs is left as it is: what is missing is a label, not worth waiting for a backup.
  if (running && vm.lock !== null) return { changed: [] };
  requireUnlocked(vm);
  if (!running) await confirmSeed(api, vm, input);
  const changes = running ? labelsOf(deps, vm, input) : everythingOf(deps, vm, input);
  const changed = [...Object.keys(changes.set), ...changes.delete];
  if (changed.length === 0) return { changed };
  context.heartbeat();
  const { digest } = vm.config;
  await api.setVmConfig(vm.node, vm.vmid, changes.set, { delete: changes.delete, digest });
  return { changed };
};

function requireUnlocked({ vmid, node, lock }: OurVm): void {
  if (lock === null) return;
  throw transient('WaitingForLock', `${vmAt({ vmid, node })} is locked (${lock}); waiting`, {
    vmid,
    node,
    lock,
    goBack: true,
  });
}

/**
 * The task's OK is no proof: an upload to another node can lose its file without a word (pve/cluster.md 8), so the
 * node's own listing must show it, with its size.
 */
async function confirmSeed(
  api: ProxmoxApi,
  { node, vmid }: OurVm,
  { plan, seedBytes }: ConfigureVmInput,
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

function everythingOf(
  deps: StepDeps,
  vm: OurVm,
  { ref, plan, clearProtection }: ConfigureVmInput,
): Changes {
  const { cores, memoryMiB, bridge, vlanTag } = plan;
  const isoVolid = seedVolidFor(plan.isoStorage, plan.seedFile);
  const wish = { cores, memoryMiB, isoVolid, bridge, vlanTag, clearProtection };
  const changes = configChanges(vm.config.values, wish);
  return { ...changes, set: { ...changes.set, ...descriptionOf(deps, vm, { ref, plan }) } };
}

/** Description and tags are applied at once, whatever the VM does (api-facts 5.12). */
function labelsOf(deps: StepDeps, vm: OurVm, input: ConfigureVmInput): Changes {
  const tags = (vm.config.values.tags ?? '').split(/[\s,;]+/).filter((tag) => tag !== '');
  // Tags people added since the start stay.
  const tag = tags.includes(vmTag) ? {} : { tags: [...tags, vmTag].join(';') };
  return { set: { ...tag, ...descriptionOf(deps, vm, input) }, delete: [] };
}

/** Proxmox cuts blanks at the end of a description, so trimmed texts are compared (pve/README 20). */
function descriptionOf(
  deps: StepDeps,
  vm: OurVm,
  { ref, plan }: Pick<ConfigureVmInput, 'ref' | 'plan'>,
): { description?: string } {
  const current = vm.config.values.description ?? '';
  const createdAt = parseMark(current)?.createdAt ?? null;
  const description = mergeMark(current, markFor(deps, ref, plan, createdAt));
  return description.trimEnd() === current.trimEnd() ? {} : { description };
}
