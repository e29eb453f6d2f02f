/** Failures of steps that several stories plan, as the real steps word them. */
import type { PlannedFailure } from './fakeWorld.ts';

/** Only another spec mends it. */
export const badImage: PlannedFailure = {
  type: 'Permanent',
  message: 'placement.image "x" is not in proxmox.templates',
  facts: { reason: 'PlacementInvalid', scope: 'proxy' },
};

/** Only the provider's administrator mends it. */
export const unauthorized: PlannedFailure = {
  type: 'Permanent',
  message: 'Proxmox refused the token (401 Authentication failed!)',
  facts: { reason: 'Unauthorized', scope: 'provider' },
};

/** Waiting mends it. */
export const locked: PlannedFailure = {
  type: 'Transient',
  message: 'VM 100000 on pv1-1 is locked (backup); waiting',
  facts: { reason: 'WaitingForLock', scope: 'proxy', vmid: 100_000, lock: 'backup' },
};
