/** A placement against the provider's catalogue: facts for the line, or the sentences that say what is wrong. Pure. */
import type { ProviderConfig } from '../../api/providersConfig.ts';
import { templateVmidFor } from '../../api/proxmoxConfig.ts';
import type { Placement } from '../../workflows/contract/proxy.ts';

export interface Placed {
  node: string;
  machineType: string;
  image: string;
  templateVmid: number;
  cores: number;
  memoryMiB: number;
  diskGiB: number | null;
}

/** `known` lists what may be written instead, for the remedy. */
export type PlacementResult =
  { kind: 'placed'; placed: Placed } | { kind: 'invalid'; problems: string[]; known: string[] };

/** Resolves zone, machine type and image; all problems together. `region` is ignored (spec, Placement). */
export function place(placement: Placement, { proxmox }: ProviderConfig): PlacementResult {
  const problems: string[] = [];
  const known: string[] = [];
  const node = placement.zone ?? (proxmox.nodes.length === 1 ? proxmox.nodes[0] : undefined);
  if (node === undefined) {
    problems.push('placement.zone is required when proxmox.nodes lists more than one node');
    known.push(`zones: ${proxmox.nodes.join(', ')}`);
  } else if (!proxmox.nodes.includes(node)) {
    problems.push(`placement.zone "${node}" is not in proxmox.nodes`);
    known.push(`zones: ${proxmox.nodes.join(', ')}`);
  }
  const size = proxmox.machineTypes[placement.machineType ?? ''];
  if (size === undefined) {
    problems.push(
      `placement.machineType "${placement.machineType ?? ''}" is not in proxmox.machineTypes`,
    );
    known.push(`machine types: ${Object.keys(proxmox.machineTypes).join(', ')}`);
  }
  const template = proxmox.templates[placement.image ?? ''];
  if (template === undefined) {
    problems.push(`placement.image "${placement.image ?? ''}" is not in proxmox.templates`);
    known.push(`images: ${Object.keys(proxmox.templates).join(', ')}`);
  }
  if (problems.length > 0 || node === undefined || size === undefined || template === undefined) {
    return { kind: 'invalid', problems, known };
  }
  const templateVmid = templateVmidFor(template, node);
  if (templateVmid === null) {
    const problem = `placement.image "${placement.image ?? ''}" has no template for node ${node} in proxmox.templates`;
    return { kind: 'invalid', problems: [problem], known: [] };
  }
  const { cores, memoryMiB, diskGiB } = size;
  const machineType = placement.machineType ?? '';
  const image = placement.image ?? '';
  return {
    kind: 'placed',
    placed: { node, machineType, image, templateVmid, cores, memoryMiB, diskGiB },
  };
}
