/** Starts the full clone of the template to the VMID that was recorded for it. */
import type { Step, StepContext, StepDeps } from './deps.ts';
import { requireOnline } from './facts/cluster.ts';
import { exclusively } from './facts/exclusive.ts';
import { lockHolder } from './facts/locks.ts';
import { listTasksEverywhere, slotsTaken } from './facts/tasks.ts';
import { claimOf, ownershipOf, readConfig } from './facts/vms.ts';
import { transient } from './providerError.ts';
import type { CloneParams, ProxmoxApi, VmRow } from './proxmox/api.ts';
import { markFor } from './facts/marks.ts';
import { formatMark } from './vm/identity.ts';
import { slotRetryMs } from '../workflows/contract/budgets.ts';
import type { CloneTemplateInput, CloneTemplateResult } from '../workflows/contract/steps.ts';

/**
 * `upid: null` when the VM is there already. Throws Transient `WaitingForSlot`, `LostRace` (with `goBack`: the VMID
 * is taken, allocate again) or `Unreachable`.
 */
export const cloneTemplate: Step<CloneTemplateInput, CloneTemplateResult> = async (
  deps,
  context,
  input,
) => {
  const { plan, vmid } = input;
  const api = deps.providers.api(plan.provider, context.call);
  return exclusively(deps.providers, `clone ${plan.provider}`, context.call.signal, async () => {
    const [rows, nodes] = await Promise.all([api.listVms(), api.listNodes()]);
    const taken = rows.find((row) => row.vmid === vmid);
    if (taken !== undefined) return alreadyThere(deps, api, taken, input);
    requireOnline(nodes, input.templateNode, `which holds template VM ${plan.templateVmid}`);
    // A clone with a dead node as its target ends OK, and the VM is then out of reach (pve/cluster.md 14).
    requireOnline(nodes, plan.node, 'where the VM is to be made');
    const { tasks } = await listTasksEverywhere(api, nodes, { type: 'qmclone', activeOnly: true });
    requireSlot(deps, input, slotsTaken(tasks, 'qmclone', await api.tokenId()));
    return submit(deps, context, api, input);
  });
};

function requireSlot(deps: StepDeps, { plan, vmid }: CloneTemplateInput, taken: number): void {
  const { maxClones } = deps.providers.config(plan.provider).proxmox;
  if (taken < maxClones) return;
  throw transient(
    'WaitingForSlot',
    `clone ${plan.templateVmid} → ${vmid}: not yet, ${taken} of ${maxClones} slots taken`,
    { provider: plan.provider, vmid, retryAfterMs: slotRetryMs },
  );
}

async function submit(
  deps: StepDeps,
  context: StepContext,
  api: ProxmoxApi,
  { ref, plan, vmid, templateNode }: CloneTemplateInput,
): Promise<CloneTemplateResult> {
  const params: CloneParams = {
    newid: vmid,
    name: plan.vmName,
    // Given in the clone itself, so that the VM is never unmarked (spec, What lands on Proxmox).
    description: formatMark(markFor(deps, ref, plan, null)),
    ...(plan.storage === null ? {} : { storage: plan.storage }),
    ...(plan.node === templateNode ? {} : { target: plan.node }),
  };
  context.heartbeat();
  const upid = await api.clone(templateNode, plan.templateVmid, params);
  return { upid, own: true };
}

/** The VMID is taken: by the clone an earlier attempt sent, or by somebody else's VM. */
async function alreadyThere(
  deps: StepDeps,
  api: ProxmoxApi,
  row: VmRow,
  { ref, plan }: CloneTemplateInput,
): Promise<CloneTemplateResult> {
  const { vmid, node } = row;
  if (row.type === 'qemu') {
    const config = await readConfig(api, row);
    const { kind } = ownershipOf(row, config, claimOf(deps, plan.provider, ref, plan.vmName));
    const { lock } = config.values;
    const cloning = lock === 'clone' && (kind === 'ours' || kind === 'nameless');
    if (kind === 'ours' && lock === undefined) return { upid: null, own: false };
    const holder = cloning ? await lockHolder(api, row, lock) : null;
    if (holder?.kind === 'task') return { upid: holder.upid, own: false };
  }
  throw transient('LostRace', `VMID ${vmid} is taken by a VM on ${node}; allocating again`, {
    vmid,
    node,
    goBack: true,
  });
}
