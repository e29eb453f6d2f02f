/** Which VM is an orphan: provably ours, and nobody's (design §3, §7). Pure. */
import {
  installationHex,
  parseMark,
  parseVmName,
  type Mark,
  type VmNameParts,
} from './identity.ts';
import { hibernationLock, isTaskLock, unlockRemedy } from './state.ts';
import type { ProxyRef } from '../../workflows/contract/proxy.ts';

/** Whose VMs are ours to collect. */
export interface Collector {
  id: string;
  hex: string;
  /** Installations whose VMs were adopted: their VMs keep the name they had, and get our mark. */
  also: readonly string[];
}

/** A VM as its config shows it. `name` in the values is the config's, never a row's. */
export interface SeenVm {
  vmid: number;
  node: string;
  type: 'qemu' | 'lxc';
  values: Readonly<Record<string, string>>;
}

export interface OwnedVm {
  name: string;
  parts: VmNameParts;
  mark: Mark;
}

/**
 * The VM's name and mark when both say that it is of this very installation. Stricter than adoption: a mark without
 * installation or UID, or with that of an installation of `--also-installation`, which may be alive elsewhere, is not.
 */
export function ownedBy(collector: Collector, { type, values }: SeenVm): OwnedVm | null {
  const { name, description, template } = values;
  if (type !== 'qemu' || template === '1' || name === undefined) return null;
  const parts = parseVmName(name);
  const mark = parseMark(description ?? '');
  if (parts === null || mark === null) return null;
  const names = [collector.hex, ...collector.also.map(installationHex)];
  const agrees =
    mark.installation === collector.id &&
    names.includes(parts.installationHex) &&
    mark.uid.toLowerCase().startsWith(`${parts.uidPrefix}-`);
  return agrees ? { name, parts, mark } : null;
}

/** The object a mark names; `null` when it names none. */
export function ownerOf({ uid, proxy }: Mark): ProxyRef | null {
  const [, namespace, name] = /^([a-z0-9.-]+)\/([a-z0-9.-]+)$/.exec(proxy ?? '') ?? [];
  if (namespace === undefined || name === undefined) return null;
  return { namespace, name, uid: uid.toLowerCase() };
}

/** Why an orphan is not to be removed, `null` when it may be. A VM that the mark retains was kept on purpose. */
export function keptBecause({ vmid, node, values }: SeenVm, { mark }: OwnedVm): string | null {
  if (mark.managed === 'retained') return 'its mark says that it is retained';
  if (mark.deletionPolicy === 'Retain') return 'its mark has the deletion policy Retain';
  if (values.protection === '1') return `it is protected; qm set ${vmid} --protection 0`;
  const { lock } = values;
  if (lock === undefined || lock === hibernationLock) return null;
  const remedy = isTaskLock(lock) ? `; if no task runs any more, ${unlockRemedy(vmid, node)}` : '';
  return `it is locked (${lock})${remedy}`;
}
