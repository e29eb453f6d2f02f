/**
 * What Proxmox's own texts mean: the data of classify.ts, used there only. Patterns are stable heads: file, line and resolver tails change between
 * releases (api-facts 9.43). One table for synchronous answers (500) and for the exit status of tasks.
 */
import type {
  ErrorClass,
  FailureFacts,
  FailureScope,
  Reason,
} from '../../workflows/contract/errors.ts';

/** Meaning of one text. Facts are taken from the named groups `lock`, `node`, `storage`. */
export interface TextRule {
  pattern: RegExp;
  errorClass: ErrorClass;
  reason: Reason;
  scope: FailureScope;
  remedy?: string;
  goBack?: true;
  /** Raised before anything was changed, so a write with this answer did nothing. */
  refused?: true;
}

const waiting = { errorClass: 'Transient', scope: 'proxy' } as const;
const wrongSetup = { errorClass: 'Permanent', scope: 'provider' } as const;
const outOfReach = { errorClass: 'Transient', scope: 'provider' } as const;

/** First match wins, so the more telling text stands first. */
const textRules: readonly TextRule[] = [
  // A 500 that hides a started task (api-facts 2.5): the only lock text whose write may have been done.
  {
    ...waiting,
    pattern: /can't lock file '\/var\/log\/pve\/tasks\//,
    reason: 'WaitingForLock',
  },
  {
    ...waiting,
    pattern: /^(?:clone failed: )?VM is locked \((?<lock>[^)]*)\)/,
    reason: 'WaitingForLock',
    refused: true,
  },
  // The flock of a VM or storage, held by another operation for its whole length (pve/README 30, 31).
  {
    ...waiting,
    pattern: /can't lock file '[^']*' - got timeout/,
    reason: 'WaitingForLock',
    refused: true,
  },
  {
    ...waiting,
    pattern: /cfs-lock '[^']*' error: no quorum!/,
    reason: 'NoQuorum',
    scope: 'provider',
    remedy: 'bring the cluster back to a majority (pvecm status)',
  },
  { ...waiting, pattern: /cfs-lock '[^']*' error: /, reason: 'WaitingForLock' },
  // Lost races for a VMID (pve/README 15, 16; pve/cluster.md 10).
  {
    ...waiting,
    pattern: /unable to create VM \d+: config file already exists/,
    reason: 'LostRace',
    goBack: true,
    refused: true,
  },
  {
    ...waiting,
    pattern: /close \(rename\) atomic file '\/etc\/pve\/[^']*' failed: File exists/,
    reason: 'LostRace',
    goBack: true,
  },
  {
    ...waiting,
    pattern: /^VM \d+ already exists/,
    reason: 'LostRace',
    goBack: true,
    refused: true,
  },
  // The VM is not under this node; whether it is gone, only a fresh listing tells (pve/README 7).
  {
    errorClass: 'NotFound',
    scope: 'proxy',
    pattern: /^Configuration file 'nodes\/(?<node>[^/']+)\/qemu-server\/\d+\.conf' does not exist/,
    reason: 'VmVanished',
    refused: true,
  },
  {
    errorClass: 'NotFound',
    scope: 'proxy',
    pattern: /^unable to find configuration file for VM \d+ on node '(?<node>[^']+)'/,
    reason: 'VmVanished',
    refused: true,
  },
  // Cluster and nodes.
  {
    ...outOfReach,
    pattern: /cluster not ready - no quorum\?/,
    reason: 'NoQuorum',
    remedy: 'bring the cluster back to a majority (pvecm status)',
    refused: true,
  },
  {
    ...outOfReach,
    pattern: /unable to open file '\/etc\/pve\/[^']*' - Permission denied/,
    reason: 'NoQuorum',
    remedy: 'bring the cluster back to a majority (pvecm status)',
  },
  {
    ...outOfReach,
    pattern: /^RPCEnvironment init request failed/,
    reason: 'Unreachable',
    remedy: 'the cluster file system of the node is down: systemctl status pve-cluster',
    refused: true,
  },
  // A typo and a node that left the cluster look the same, and the second must not latch a deletion: Transient.
  {
    ...outOfReach,
    pattern: /^hostname lookup '(?<node>[^']+)' failed/,
    reason: 'Unreachable',
    remedy: "compare the provider's nodes with: pvecm nodes",
    refused: true,
  },
  {
    ...outOfReach,
    pattern: /no such cluster node '(?<node>[^']+)'/,
    reason: 'Unreachable',
    remedy: "compare the provider's nodes with: pvecm nodes",
    refused: true,
  },
  {
    ...outOfReach,
    pattern: /^can't activate storage '(?<storage>[^']+)' on node '(?<node>[^']+)'/,
    reason: 'Unreachable',
    remedy: 'the node of the storage does not answer: pvecm status',
  },
  // Storage.
  {
    ...wrongSetup,
    pattern: /storage '(?<storage>[^']+)' (?:does not exist|is disabled|is not available on node)/,
    reason: 'StorageUnavailable',
    remedy: 'compare storages and their nodes with: pvesm status',
    refused: true,
  },
  {
    ...wrongSetup,
    pattern: /storage '(?<storage>[^']+)' does not support /,
    reason: 'StorageUnavailable',
    remedy: 'add the content type to the storage: pvesm set <storage> --content',
    refused: true,
  },
  {
    ...wrongSetup,
    pattern: /^can't upload to storage type /,
    reason: 'StorageUnavailable',
    remedy: 'use a directory-like storage with content iso for the seeds',
    refused: true,
  },
  {
    ...outOfReach,
    pattern: /unable to activate storage '(?<storage>[^']+)'/,
    reason: 'StorageUnavailable',
    remedy: 'mount or repair the storage on that node: pvesm status',
    refused: true,
  },
  {
    ...outOfReach,
    pattern: /No space left on device/,
    reason: 'StorageUnavailable',
    remedy: 'free space on the storage: pvesm status',
  },
  // A seed that is missing when the VM is configured or started (pve/README 11, 25).
  {
    ...waiting,
    pattern: /volume '(?<storage>[^':]+):iso\/[^']*' does not exist/,
    reason: 'UploadNotConfirmed',
    goBack: true,
  },
  // Templates that can never be cloned the way the provider is configured (pve/cluster.md 12).
  {
    ...wrongSetup,
    pattern: /^can't clone VM to node '(?<node>[^']+)' \(VM uses local storage\)/,
    reason: 'TemplateUnusable',
    remedy: 'give the node its own copy of the template, or put disks and ISO on shared storage',
    refused: true,
  },
  {
    ...wrongSetup,
    pattern: /^can't clone to non-shared storage '(?<storage>[^']+)'/,
    reason: 'TemplateUnusable',
    remedy: 'give the node its own copy of the template, or clone to a shared storage',
    refused: true,
  },
  {
    ...wrongSetup,
    pattern: /^(?:Full|Linked) clone feature is not supported for /,
    reason: 'TemplateUnusable',
    remedy: "move the template's disks to a storage that can clone",
    refused: true,
  },
  // Concurrent changes by people.
  {
    ...waiting,
    pattern: /^checksum mismatch \(file change by other user\?\)/,
    reason: 'ConfigChanged',
    refused: true,
  },
  {
    ...waiting,
    pattern: /^can't remove (?:VM|drive) .* - protection mode enabled/,
    reason: 'DeletionBlocked',
    remedy: 'clear the protection of the VM: qm set <vmid> --protection 0',
    refused: true,
  },
  {
    ...waiting,
    pattern: /^VM \d+ is running - destroy failed/,
    reason: 'ApiError',
    goBack: true,
    refused: true,
  },
  { ...waiting, pattern: /^VM \d+ already running/, reason: 'TaskFailed', goBack: true },
  // Guest agent (pve/README 43).
  {
    ...waiting,
    pattern: /^No QEMU guest agent configured/,
    reason: 'AgentSilent',
    remedy: "the VM's agent option is off: qm set <vmid> --agent 1",
  },
  {
    ...waiting,
    pattern: /^QEMU guest agent is not running/,
    reason: 'AgentSilent',
    remedy: 'look at qemu-guest-agent inside the guest',
  },
  {
    ...waiting,
    pattern: /^VM \d+ qga command '[^']*' failed/,
    reason: 'AgentSilent',
    remedy: 'look at qemu-guest-agent inside the guest',
  },
  { ...waiting, pattern: /^VM \d+ (?:is )?not running/, reason: 'VmStopped' },
  // Ends that say nothing about what was done (design §5): the VM tells.
  {
    ...waiting,
    pattern: /^(?:unexpected status|unable to get last line from task log)/,
    reason: 'TaskFailed',
    goBack: true,
  },
  {
    ...waiting,
    pattern: /(?:received interrupt|interrupted by signal)/,
    reason: 'TaskFailed',
    goBack: true,
  },
  {
    ...waiting,
    pattern: /^command 'ha-manager /,
    reason: 'TaskFailed',
    remedy: 'the HA resource is in error: ha-manager set vm:<vmid> --state disabled',
  },
];

/** The rule for a text, and the facts its groups hold; `null` for a text we have no rule for. */
export function matchText(
  text: string,
): { rule: TextRule; facts: Pick<FailureFacts, 'lock' | 'node' | 'storage'> } | null {
  for (const rule of textRules) {
    const match = rule.pattern.exec(text);
    if (match === null) continue;
    const { lock, node, storage } = match.groups ?? {};
    return {
      rule,
      facts: {
        ...(lock === undefined ? {} : { lock }),
        ...(node === undefined ? {} : { node }),
        ...(storage === undefined ? {} : { storage }),
      },
    };
  }
  return null;
}
