/** The template of a plan, checked right before a clone. */
import { isNotFound, permanent, transient } from '../providerError.ts';
import type { NodeRow, ProxmoxApi, VmConfig, VmRow } from '../proxmox/api.ts';
import { checkTemplate } from '../vm/hardware.ts';
import type { Plan } from '../../workflows/contract/steps.ts';
import { requireOnline } from './cluster.ts';

/**
 * The template and its node. A clone copies its config, so a bad template could not be mended afterwards. Throws
 * Permanent `TemplateUnusable` (scope provider), Transient `Unreachable` unless both nodes are online.
 */
export async function readTemplate(
  api: ProxmoxApi,
  rows: readonly VmRow[],
  nodes: readonly NodeRow[],
  plan: Plan,
): Promise<{ node: string; config: VmConfig }> {
  const { templateVmid: vmid, image } = plan;
  const named = `placement.image "${image}": template VM ${vmid}`;
  const row = rows.find((candidate) => candidate.vmid === vmid);
  if (row === undefined) throw unusable(`${named} does not exist`, plan);
  if (row.type !== 'qemu') throw unusable(`${named} is not a template`, plan);
  requireOnline(nodes, row.node, `which holds template VM ${vmid}`);
  requireOnline(nodes, plan.node, 'where the VM is to be made');
  const config = await templateConfig(api, row);
  const wantsNetChange = plan.bridge !== null || plan.vlanTag !== null;
  const wish = { image, vmid, wantsNetChange, diskGiB: plan.diskGiB };
  const problem = checkTemplate(config.values, wish);
  if (problem !== null) throw unusable(problem, plan);
  return { node: row.node, config };
}

async function templateConfig(api: ProxmoxApi, { node, vmid }: VmRow): Promise<VmConfig> {
  try {
    return await api.getVmConfig(node, vmid);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    throw transient(
      'TemplateUnusable',
      `template VM ${vmid} is not on ${node} any more (moved or removed); looking again`,
      { scope: 'provider', node, vmid, goBack: true },
      error,
    );
  }
}

function unusable(message: string, { image, templateVmid: vmid }: Plan): Error {
  const remedy = `mend the template, or name another one in proxmox.templates.${image}`;
  return permanent('TemplateUnusable', message, { scope: 'provider', vmid, remedy });
}
