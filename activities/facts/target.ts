/** What a health check makes of the answers of one node: its reason and the sentence beside it. Pure. */
import { templateVmidFor, type ProxmoxConfig } from '../../api/proxmoxConfig.ts';
import type { Reason, TargetReason } from '../../workflows/contract/errors.ts';
import type { StorageStatus, VmRow } from '../proxmox/api.ts';
import type { PrivilegeNeeds } from '../proxmox/privileges.ts';
import type { ProviderError } from '../providerError.ts';

/** Why a target is not ready. */
export interface TargetProblem {
  reason: TargetReason;
  message: string;
}

/** Which of the requests was under way. */
export type CheckStage = 'token' | 'version' | 'privileges' | 'node' | 'storage' | 'templates';

/** Reasons of failures that are reasons of a target by the same or another name (specification, Health check). */
const sameReasons: Partial<Record<Reason, TargetReason>> = {
  CredentialsUnavailable: 'CredentialsUnavailable',
  TokenMalformed: 'CredentialsUnavailable',
  CertificateInvalid: 'CertificateInvalid',
  Unreachable: 'Unreachable',
  Unauthorized: 'Unauthorized',
  Forbidden: 'Forbidden',
  Timeout: 'Timeout',
};

/** A failed request as a reason of the target. */
export function problemOf(error: ProviderError, stage: CheckStage): TargetProblem {
  const { facts, message } = error;
  // The token was read before the first request; what is missing after that is the CA file.
  if (facts.reason === 'CredentialsUnavailable' && stage !== 'token') {
    return { reason: 'CertificateInvalid', message };
  }
  const same = sameReasons[facts.reason];
  if (same !== undefined) return { reason: same, message };
  if (stage === 'storage' && saysStorage(error)) return { reason: 'StorageNotFound', message };
  return { reason: 'APIError', message };
}

/** 500 by the specification; a storage nobody defined is a 400 `No such storage.` (pve/README 42). */
function saysStorage({ facts }: ProviderError): boolean {
  return facts.reason === 'StorageUnavailable' || facts.httpStatus === 500;
}

/** `enabled` is 0 also on a node that the storage is not meant for (captures 02-storage-status-*). */
export function storageProblem(
  storage: string,
  node: string,
  status: StorageStatus,
): TargetProblem | null {
  const what = `storage ${storage}`;
  const problem = !status.enabled
    ? `${what} is disabled, or not meant for node ${node} (enabled 0); check nodes and disable of it with: pvesm config ${storage}`
    : !status.active
      ? `${what} is not active on node ${node} (mounted? online?); look at: pvesm status`
      : !status.content.includes('iso')
        ? `${what} holds ${status.content.join(', ') || 'nothing'} on node ${node}, not iso; allow it with: pvesm set ${storage} --content ${[...status.content, 'iso'].join(',')}`
        : null;
  return problem === null ? null : { reason: 'StorageNotFound', message: problem };
}

/** Templates by key that a VM on this node could be cloned from. */
export function templatesFor({ templates }: ProxmoxConfig, node: string): [string, number][] {
  return Object.entries(templates).flatMap(([key, entry]): [string, number][] => {
    const vmid = templateVmidFor(entry, node);
    return vmid === null ? [] : [[key, vmid]];
  });
}

/** How many of the templates there are, and what is wrong with the others. */
export function judgeTemplates(
  templates: readonly [string, number][],
  rows: readonly VmRow[],
): { found: number; problem: TargetProblem | null } {
  const problems = templates.flatMap(([key, vmid]) => {
    const row = rows.find((one) => one.vmid === vmid);
    if (row === undefined) return `templates.${key}: VM ${vmid} does not exist`;
    // Without a flag nothing is known: its node has been silent for a while.
    const is = row.type === 'qemu' && row.template !== false;
    return is ? [] : `templates.${key}: VM ${vmid} is not a template`;
  });
  const found = templates.length - problems.length;
  if (problems.length === 0) return { found, problem: null };
  const message = `${problems.join('; ')}; compare the catalogue with: qm list`;
  return { found, problem: { reason: 'TemplateNotFound', message } };
}

/** What the config makes the operator do on this node. */
export function needsOn(config: ProxmoxConfig, node: string, pveVersion: string): PrivilegeNeeds {
  return {
    node,
    pveVersion,
    templateVmids: [...new Set(templatesFor(config, node).map(([, vmid]) => vmid))],
    vmid: config.vmidRange.min,
    isoStorage: config.isoStorage,
    storage: config.storage,
    network: config.bridge !== null || config.vlanTag !== null,
    resize: Object.values(config.machineTypes).some(({ diskGiB }) => diskGiB !== null),
  };
}
