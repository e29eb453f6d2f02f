/** Finds and removes what integration tests made: VMs in the range with their mark, and seeds with their names. */
import { deleteSeed } from '../../activities/deleteSeed.ts';
import { destroyVm } from '../../activities/destroyVm.ts';
import { stopVm } from '../../activities/stopVm.ts';
import {
  parseMark,
  parseSeedFile,
  parseVmName,
  seedFileFor,
} from '../../activities/vm/identity.ts';
import { runningClones } from '../../activities/facts/tasks.ts';
import { isNotFound, ProviderError } from '../../activities/providerError.ts';
import { UserError } from '../../deploy/dev/program.ts';
import type { ProxyRef } from '../../workflows/contract/proxy.ts';
import type { StopVmInput } from '../../workflows/contract/removalSteps.ts';
import { installationId, type Host } from './host.ts';
import { providerName } from './settings.ts';

/** A VM that a run of the integration test made. */
export interface FoundVm {
  vmid: number;
  node: string;
  name: string;
  ref: ProxyRef;
  specHash: string;
  createdAtMs: number;
}

/** VMs in the range whose name and mark agree that an integration test made them; with `uid` those of one run. */
export async function findVms(host: Host, uid?: string): Promise<FoundVm[]> {
  const { vmidRange } = host.deps.providers.config(providerName).proxmox;
  const rows = (await host.api.listVms()).filter(
    ({ vmid, type }) => type === 'qemu' && vmid >= vmidRange.min && vmid <= vmidRange.max,
  );
  const found: FoundVm[] = [];
  for (const { vmid, node } of rows) {
    const values = await configOf(host, node, vmid);
    const { name, description } = values;
    const mark = parseMark(description ?? '');
    const parts = parseVmName(name ?? '');
    if (name === undefined || mark === null || parts === null) continue;
    if (mark.installation !== installationId) continue;
    if (parts.installationHex !== host.deps.installation.hex) continue;
    if (!mark.uid.startsWith(parts.uidPrefix) || (uid !== undefined && mark.uid !== uid)) continue;
    const [namespace = '', proxy = ''] = (mark.proxy ?? '').split('/');
    const ref = { namespace, name: proxy, uid: mark.uid };
    const createdAtMs = Date.parse(mark.createdAt ?? '') || 0;
    found.push({ vmid, node, name, ref, specHash: mark.spec ?? parts.specPrefix, createdAtMs });
  }
  return found;
}

async function configOf(
  host: Host,
  node: string,
  vmid: number,
): Promise<Readonly<Record<string, string>>> {
  try {
    return (await host.api.getVmConfig(node, vmid)).values;
  } catch (error) {
    if (isNotFound(error)) return {};
    throw error;
  }
}

/** Seeds that an integration test made; with `uid` those of one run. */
export async function findSeeds(host: Host, uid?: string): Promise<string[]> {
  const { isoStorage, nodes } = host.deps.providers.config(providerName).proxmox;
  const rows = await host.api.listIsos(nodes[0] ?? '', isoStorage);
  return rows
    .map(({ volid }) => volid.split('/').at(-1) ?? '')
    .filter((file) => {
      const seed = parseSeedFile(file);
      if (seed?.installationHex !== host.deps.installation.hex) return false;
      return uid === undefined || uid.startsWith(seed.uidPrefix);
    });
}

/** Stops and destroys one VM, and deletes its seed, each proven by a fresh look. */
async function removeVm(host: Host, vm: FoundVm): Promise<void> {
  const { vmid, node, name, ref, specHash } = vm;
  host.log(`removing VM ${vmid} (${name}) on ${node}`);
  const input: StopVmInput = {
    ref,
    vm: { provider: providerName, vmid, node, name },
    // The object of a run is gone with its process, which confirms a deletion.
    purpose: 'deletion',
    specHash,
    protectionInherited: false,
    ownClone: null,
  };
  host.records.remove(ref);
  await host.patiently(() => takeAway(host, input));
  await removeSeed(host, seedFileFor(name), vmid);
}

/** From its start again whenever something is in the way: a VM that runs again is stopped again. */
async function takeAway(host: Host, input: StopVmInput): Promise<void> {
  const { vmid } = input.vm;
  for (;;) {
    const stopped = await host.run(stopVm, input);
    if (stopped.kind !== 'task') break;
    await host.finished(stopped.upid, 'stop', vmid);
  }
  for (;;) {
    const destroyed = await host.run(destroyVm, input);
    if (destroyed.kind === 'gone') return;
    await host.finished(destroyed.upid, 'destroy', vmid);
  }
}

/** Deletes one seed from the node of the test. */
async function removeSeed(host: Host, seedFile: string, vmid: number): Promise<void> {
  const { nodes } = host.deps.providers.config(providerName).proxmox;
  const vmName = parseSeedFile(seedFile)?.vmName ?? '';
  const place = { provider: providerName, node: nodes[0] ?? '', isoStorage: null };
  const input = { ref: host.ref, ...place, vmName, seedFile, vmid };
  for (;;) {
    const deleted = await host.patiently(() => host.run(deleteSeed, input));
    if (deleted.kind === 'gone') return;
    host.log(`deleting seed ${seedFile}`);
    await host.finished(deleted.upid, 'seedDelete', vmid);
  }
}

/** A VM that is being cloned to has neither name nor mark, so its clone is waited for before anything is looked for. */
async function awaitClones(host: Host): Promise<void> {
  const { nodes, vmidRange } = host.deps.providers.config(providerName).proxmox;
  for (const node of nodes) {
    const tasks = await host.api.listTasks(node, { type: 'qmclone', activeOnly: true });
    for (const { upid, vmid } of await runningClones(host.api, tasks)) {
      if (vmid === null || vmid < vmidRange.min || vmid > vmidRange.max) continue;
      host.log(`waiting for the clone to VM ${vmid}, to remove it`);
      await host.finished(upid, 'clone', vmid).catch((error: unknown) => {
        // One that failed has taken its VM along.
        if (!(error instanceof ProviderError) || error.facts.taskEnded !== true) throw error;
      });
    }
  }
}

/** Removes everything of one run, or of all runs, and makes sure that nothing is left. */
export async function sweep(host: Host, uid?: string): Promise<void> {
  await awaitClones(host);
  for (const vm of await findVms(host, uid)) await removeVm(host, vm);
  const lowest = host.deps.providers.config(providerName).proxmox.vmidRange.min;
  for (const seed of await findSeeds(host, uid)) await removeSeed(host, seed, lowest);
  const left = [...(await findVms(host, uid)).map(({ vmid }) => `VM ${vmid}`), ...(await findSeeds(host, uid))]; // prettier-ignore
  if (left.length > 0) throw new UserError(`Left behind: ${left.join(', ')}`);
}
