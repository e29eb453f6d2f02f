/** Lists the seeds of ours that belong to no Proxy and no VM, on every node of the provider. Changes nothing. */
import type { Step, StepDeps } from './deps.ts';
import { belongsTo, settingsOf } from './facts/census.ts';
import { proveRights } from './facts/cluster.ts';
import { lockHolder } from './facts/locks.ts';
import { vmAt } from './facts/vms.ts';
import { isNotFound, isOutOfReach } from './providerError.ts';
import type { ProxmoxApi, VmRow } from './proxmox/api.ts';
import { parseSeedFile, parseVmName, seedVolidFor } from './vm/identity.ts';
import { isTaskLock } from './vm/state.ts';
import type {
  ListSeedsInput,
  ListSeedsResult,
  OrphanSeed,
} from '../workflows/contract/collection.ts';

/** Seeds on one node's storage; those of a shared one stand under the first node that answered. */
interface Shelf {
  node: string;
  shared: boolean;
  files: string[];
}

/**
 * Seeds first, then VMs, then Proxies, so that a seed made meanwhile has its VM or its Proxy in a later list. A node that
 * does not answer is named and left out. Throws Transient `ListingIncomplete`, `KubernetesUnavailable`, and Permanent
 * `Forbidden` or `StorageUnavailable` as the listing of a storage does.
 */
export const listSeeds: Step<ListSeedsInput, ListSeedsResult> = async (deps, context, input) => {
  const { provider } = input;
  const api = deps.providers.api(provider, context.call);
  const { isoStorage: storage, nodes } = deps.providers.config(provider).proxmox;
  const { shelves, silentNodes } = await readShelves(deps, api, nodes, storage);
  const rows = await api.listVms();
  await proveRights(api, provider, '/vms');
  const survey = await deps.survey();
  const orphans: OrphanSeed[] = [];
  for (const shelf of shelves) {
    for (const file of shelf.files) {
      const parts = parseSeedFile(file);
      if (parts === null || belongsTo(parts.vmName, survey)) continue;
      if (rows.some(({ name }) => parseVmName(name ?? '')?.uidPrefix === parts.uidPrefix)) continue;
      const { vmName, uidPrefix } = parts;
      const { node } = shelf;
      const examined = input.due.includes(`${node} ${file}`);
      const seed = { node, storage, file, vmName, uidPrefix };
      const heldBy = examined ? await holderOf(api, rows, shelf, seed, input) : null;
      orphans.push({ ...seed, examined, heldBy });
    }
  }
  context.log.debug({ orphans: orphans.length, silentNodes }, 'proxmox seeds held against the proxies'); // prettier-ignore
  return { settings: settingsOf(deps, provider), orphans, silentNodes };
};

async function readShelves(
  deps: StepDeps,
  api: ProxmoxApi,
  nodes: readonly string[],
  storage: string,
): Promise<{ shelves: Shelf[]; silentNodes: string[] }> {
  const online = new Set((await api.listNodes()).filter((row) => row.status === 'online').map((row) => row.node)); // prettier-ignore
  const shelves: Shelf[] = [];
  const silentNodes: string[] = [];
  for (const node of nodes) {
    if (shelves.some(({ shared }) => shared)) break;
    const shelf = online.has(node) ? await readShelf(deps, api, node, storage) : null;
    if (shelf === null) silentNodes.push(node);
    else shelves.push(shelf);
  }
  return { shelves, silentNodes };
}

/** `null` when the node does not answer. Another installation's seeds are not even looked at. */
async function readShelf(
  { installation }: StepDeps,
  api: ProxmoxApi,
  node: string,
  storage: string,
): Promise<Shelf | null> {
  try {
    const { shared } = await api.getStorageStatus(node, storage);
    const prefix = seedVolidFor(storage, '');
    const files = (await api.listIsos(node, storage))
      .filter(({ volid }) => volid.startsWith(prefix))
      .map(({ volid }) => volid.slice(prefix.length))
      .filter((file) => parseSeedFile(file)?.installationHex === installation.hex);
    return { node, shared, files };
  } catch (error) {
    if (isOutOfReach(error)) return null;
    throw error;
  }
}

/** What may still need a seed, in words; `null` when every VM that could name it was read and none does. */
async function holderOf(
  api: ProxmoxApi,
  rows: readonly VmRow[],
  { node, shared }: Shelf,
  seed: { storage: string; file: string; vmName: string; uidPrefix: string },
  { knownVmids }: ListSeedsInput,
): Promise<string | null> {
  const volid = seedVolidFor(seed.storage, seed.file);
  const known = knownVmids[seed.uidPrefix] ?? [];
  for (const row of rows) {
    if (row.type !== 'qemu') continue;
    const here = shared || row.node === node;
    if (!here && !known.includes(row.vmid)) continue;
    const why = await needOf(api, row, volid, seed.vmName, known.includes(row.vmid));
    if (why !== null) return why;
  }
  return null;
}

/** A nameless VM tells nobody whose it is: while its task runs, or on a VMID of this UID, it may be the seed's. */
async function needOf(
  api: ProxmoxApi,
  row: VmRow,
  volid: string,
  vmName: string,
  known: boolean,
): Promise<string | null> {
  try {
    const { values } = await api.getVmConfig(row.node, row.vmid);
    if (Object.values(values).some((value) => value === volid || value.startsWith(`${volid},`))) {
      return `${vmAt(row)} names it`;
    }
    const { name, lock } = values;
    if (name === vmName) return `${vmAt(row)} has its name`;
    if (name !== undefined && !(known && lock !== undefined)) return null;
    if (known) return `${vmAt(row)} is not finished, and its VMID was that of the seed's VM`;
    if (lock === undefined || !isTaskLock(lock)) return null;
    const { kind } = await lockHolder(api, row, lock);
    return kind === 'nobody' ? null : `${vmAt(row)} is being made and has no name yet`;
  } catch (error) {
    if (isNotFound(error)) return null;
    if (isOutOfReach(error)) return `${vmAt(row)} may need it, and its node does not answer`;
    throw error;
  }
}
