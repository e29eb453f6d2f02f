/** Deletes a VM's seed from one node, and tells where else it is. */
import type { Step, StepContext, StepDeps } from './deps.ts';
import { belongsTo } from './facts/census.ts';
import { proveListing, requireOnline } from './facts/cluster.ts';
import { vmAt } from './facts/vms.ts';
import { ProviderError, isNotFound, transient } from './providerError.ts';
import type { NodeRow, ProxmoxApi, VmRow } from './proxmox/api.ts';
import { ideSeedVolid } from './vm/hardware.ts';
import { seedVolidFor } from './vm/identity.ts';
import type { DeleteSeedInput, DeleteSeedResult } from '../workflows/contract/removalSteps.ts';

/**
 * `gone` only by the node's own listing: under the wrong node a delete answers OK and deletes nothing, and a missing
 * file is deleted with success (pve/cluster.md 5, pve/README 40). A node that the cluster does not know holds none.
 * Throws Transient `DeletionBlocked` while a VM needs the seed: it could not be started any more; of an orphan
 * `StillWanted` when its Proxy exists.
 */
export const deleteSeed: Step<DeleteSeedInput, DeleteSeedResult> = async (deps, context, input) => {
  const { provider, node, seedFile } = input;
  const api = deps.providers.api(provider, context.call);
  const [nodes, rows] = await Promise.all([api.listNodes(), api.listVms()]);
  if (!nodes.some((row) => row.node === node)) return { kind: 'gone' };
  requireOnline(nodes, node, `which may hold seed ${seedFile}`);
  const isoStorage = input.isoStorage ?? deps.providers.config(provider).proxmox.isoStorage;
  const volid = seedVolidFor(isoStorage, seedFile);
  const isListed = async (): Promise<boolean> =>
    (await api.listIsos(node, isoStorage)).some((iso) => iso.volid === volid);
  if (!(await isListed())) {
    const alsoOn = await elsewhere(deps, context, api, nodes, input, volid);
    return alsoOn.length === 0 ? { kind: 'gone' } : { kind: 'gone', alsoOn };
  }
  await proveListing(deps, api, provider, '/vms');
  for (const row of rows) {
    if (mayNeedIt(row, input)) await requireUnneeded(api, row, input, volid);
  }
  if (input.orphan === true) await requireNoProxy(deps, input);
  context.heartbeat();
  const upid = await api.deleteVolume(node, isoStorage, volid);
  if (upid !== null) return { kind: 'task', upid };
  if (!(await isListed())) return { kind: 'gone' };
  throw transient(
    'TaskFailed',
    `seed ${volid} is still listed on ${node} although Proxmox answered that it was deleted`,
    { provider, node, storage: isoStorage },
  );
};

/**
 * Other nodes of the provider that list the seed: a migrated VM leaves it behind on a storage that is not shared, and a run
 * whose record was lost knows of one node only. Best effort: a node that cannot be asked is skipped.
 */
async function elsewhere(
  deps: StepDeps,
  context: StepContext,
  api: ProxmoxApi,
  cluster: readonly NodeRow[],
  { provider, node: own }: DeleteSeedInput,
  volid: string,
): Promise<string[]> {
  const { nodes } = deps.providers.config(provider).proxmox;
  const [storage = ''] = volid.split(':');
  const online = nodes.filter((name) => cluster.some(({ node, status }) => node === name && status === 'online')); // prettier-ignore
  const found: string[] = [];
  for (const node of online.filter((name) => name !== own)) {
    try {
      const isos = await api.listIsos(node, storage);
      if (isos.some((iso) => iso.volid === volid)) found.push(node);
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      const reason = error.message;
      context.log.debug({ node, storage, reason }, 'proxmox seed delete failed on a node, skipped');
    }
  }
  return found;
}

/** Asked last: the object may have come back since the listing that found no Proxy. */
async function requireNoProxy(
  deps: StepDeps,
  { vmName, seedFile, node }: DeleteSeedInput,
): Promise<void> {
  if (!belongsTo(vmName, await deps.survey())) return;
  throw transient('StillWanted', `seed ${seedFile} on ${node} is kept: its Proxy exists`, { node });
}

/** Rows of our name, the VM the seed was made for whatever its name, and rows of the node that cannot tell theirs. */
function mayNeedIt(row: VmRow, { vmName, vmid, node }: DeleteSeedInput): boolean {
  if (row.type !== 'qemu') return false;
  if (row.name === vmName || row.vmid === vmid) return true;
  return row.node === node && (row.name === undefined || row.name === `VM ${row.vmid}`);
}

/** A row's name may be a predecessor's, so the config decides. */
async function requireUnneeded(
  api: ProxmoxApi,
  row: VmRow,
  { vmName }: DeleteSeedInput,
  volid: string,
): Promise<void> {
  const { vmid, node } = row;
  let byName = row.name === vmName;
  try {
    const { values } = await api.getVmConfig(node, vmid);
    byName = values.name === vmName;
    if (!byName && ideSeedVolid(values) !== volid) return;
  } catch (error) {
    if (!isNotFound(error)) throw error;
    // Removed since the listing, or moved: the next look tells.
    if (row.name !== vmName) return;
  }
  const remedy = byName
    ? `remove or rename VM ${vmid}`
    : `remove VM ${vmid}, or detach the seed: qm set ${vmid} --ide2 none,media=cdrom`;
  throw transient('DeletionBlocked', `seed ${volid} is kept: ${vmAt(row)} may need it; ${remedy}`, {
    vmid,
    node,
    remedy,
    retryAfterMs: 2_000,
  });
}
