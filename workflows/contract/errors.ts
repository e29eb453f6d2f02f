/** Error classes and reasons: the vocabulary of conditions, events, logs and docs/errors.md. */

/**
 * `Permanent`: trying again unchanged cannot help. `NotFound`: the VM is not there (proven). `Transient`:
 * everything else, which is the specification's default.
 */
export const errorClasses = ['Permanent', 'NotFound', 'Transient'] as const;
export type ErrorClass = (typeof errorClasses)[number];

/** Who can mend a Permanent failure (design §5): the Proxy's spec, or the provider's configuration. */
export type FailureScope = 'proxy' | 'provider';

/** Every reason a failure may carry, with what it means. The table in docs/errors.md is tested against it. */
export const reasons = {
  // placement and spec
  PlacementInvalid: "a placement value is not in the provider's catalogue",
  TemplateUnusable: 'the template cannot be cloned into a working VM',
  CloudInitUnavailable: 'the Secret with cloud-init, or its key, is missing',
  CloudInitChanged: 'cloud-init changed between two steps; the line starts again',
  // credentials and connection
  CredentialsUnavailable: 'the token file or CA file is not there (yet)',
  TokenMalformed: 'the token file is not <user>@<realm>!<tokenid>=<secret>',
  CertificateInvalid: 'TLS verification failed, or the CA file holds no certificate',
  Unauthorized: 'Proxmox refused the token (401)',
  Forbidden: 'the token lacks a privilege (403)',
  Unreachable: 'no connection to the API, or to the node behind it',
  Timeout: 'a request ran out of its bound',
  NoQuorum: 'the node is cut off from the majority of its cluster and refuses changes',
  ProviderUnknown: 'no configured provider has this name',
  ProviderNotServed: 'no worker serves this provider',
  // VMIDs and ownership
  VmidsExhausted: 'all candidate VMIDs are taken or cooling',
  OwnershipConflict: 'a VM with our name carries no mark or another UID',
  DuplicateVm: "two VMs carry the Proxy's VM name",
  InstallationMismatch: 'the VM belongs to another installation of the operator',
  ListingIncomplete: 'the listing cannot prove that a VM is absent',
  // waiting
  WaitingForSlot: 'as many clones or destroys run as the provider allows',
  WaitingForLock: 'the VM or a file of Proxmox is locked',
  CloneOutcomeUnknown: 'a clone request ended without an answer; its effect is awaited',
  LostRace: 'another clone took the VMID first',
  ConfigChanged: "the VM's config changed between our read and our write",
  TaskFailed: 'a Proxmox task ended in an error',
  TaskUnknown: 'Proxmox no longer knows the task; the VM itself tells how it ended',
  BudgetExceeded: 'a wait ran out of its budget; the task is left alone',
  StorageUnavailable: 'the seed storage is missing, inactive or cannot hold ISO images',
  UploadNotConfirmed: 'the uploaded seed does not show in the storage with its size',
  VmVanished: 'the VM is not where it was a moment ago',
  VmStopped: 'the VM does not run although it should',
  VmIoError: 'the VM is halted by an I/O error of its disk',
  NodeUnreachable: 'the node of the VM does not answer; the VM is left as it is',
  MassAbsence: 'so many VMs are missing at once that nothing is concluded from it',
  VmLeftover: 'the VMID is held by a lock that no API token can clear',
  AgentSilent: 'the guest agent does not answer, so the address is unknown',
  AddressAmbiguous: "the guest reports several addresses and none on net0's MAC",
  // deletion
  DeletionBlocked: 'the VM is protected in Proxmox; the deletion waits',
  StillWanted: 'Kubernetes wants the VM (again), so it is not removed',
  VmRunning: 'the VM runs, so it cannot be destroyed yet',
  DeletionPaused: 'the Proxy is paused; the deletion waits',
  ObjectMissing: 'the Proxy object vanished without a deletion this run has seen',
  // the rest
  BadRequest: 'Proxmox refused the parameters (400)',
  ApiError: 'any other answer of Proxmox',
  KubernetesUnavailable: 'the Kubernetes API did not do what was asked',
  ObjectGone: 'the Proxy object no longer exists',
  Internal: 'a fault in the operator itself',
} as const satisfies Record<string, string>;
export type Reason = keyof typeof reasons;

/** Nobody serves the provider: a queue without a poller, or a worker whose config does not have it (any more). */
export function isUnserved(reason: Reason): boolean {
  return reason === 'ProviderNotServed' || reason === 'ProviderUnknown';
}

/** Reasons of a target in ProviderHealth (specification, Health check). `APIError` is spelled as there. */
export const targetReasons = [
  'Reachable',
  'CredentialsUnavailable',
  'CertificateInvalid',
  'Unreachable',
  'Unauthorized',
  'Forbidden',
  'Timeout',
  'StorageNotFound',
  'TemplateNotFound',
  'APIError',
  'ProviderNotServed',
] as const;
export type TargetReason = (typeof targetReasons)[number];

/**
 * The details of every failure that crosses the activity boundary: plain facts, never a secret.
 * `retryAfterMs` overrides the workflow's backoff where waiting longer would only waste a turn.
 */
export interface FailureFacts {
  reason: Reason;
  scope: FailureScope;
  provider?: string;
  node?: string;
  vmid?: number;
  upid?: string;
  lock?: string;
  storage?: string;
  httpStatus?: number;
  /** What a person does about it: one sentence or one command line. */
  remedy?: string;
  retryAfterMs?: number;
  /** Whether a write may have been carried out although it failed (design §5, unknown outcomes). */
  outcomeUnknown?: boolean;
  /** The awaited task has ended, so nothing it does is still to come. */
  taskEnded?: boolean;
  /** The line (or decommission) starts again from its fresh look instead of repeating this step. */
  goBack?: boolean;
}
