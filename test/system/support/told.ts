/** What a Proxy is expected to tell at points of its life. */
import type { Phase } from '../../../workflows/contract/proxy.ts';

/** What is not named may be anything, but the same in all windows. */
export interface Told {
  phase: Phase;
  /** `<status> <reason>` by type. */
  conditions: Record<string, string>;
  /** Empty: there is nothing to say. */
  message: RegExp | '';
  /** Search attribute ProxyBlockedBy. */
  blockedBy: string | null;
  /** Of the VM that is shown. */
  vm?: { ip?: string | null; node?: string; vmid?: number };
}

export const ready = {
  phase: 'Ready',
  conditions: {
    Ready: 'True ProbeSucceeded',
    Provisioned: 'True AddressKnown',
    Healthy: 'True ProbeSucceeded',
    Reconciling: 'False Settled',
    Stalled: 'False Progressing',
  },
  message: '',
  blockedBy: null,
} as const satisfies Told;

/** Ready on another node than its spec names. */
export const moved = {
  ...ready,
  conditions: { ...ready.conditions, Provisioned: 'True PlacementDiffers' },
} as const satisfies Told;

/** Ready, while nothing is changed on Proxmox. */
export const paused = {
  ...ready,
  conditions: { ...ready.conditions, Reconciling: 'False Paused' },
  message: /^paused: nothing is changed on Proxmox$/,
} as const satisfies Told;

/** Its clone is under way. */
export const beingMade = {
  phase: 'Provisioning',
  conditions: {
    Ready: 'False Provisioning',
    Healthy: 'Unknown AwaitingProbe',
    Reconciling: 'True Provisioning',
  },
  message: /^cloning template 9001 to VM \d+ on pv1-1 /,
  blockedBy: null,
  vm: { ip: null, node: 'pv1-1' },
} as const satisfies Told;

/** It has an address, and its probes fail. */
export function unhealthy(reason: string, message: RegExp): Told {
  return {
    phase: 'Running',
    conditions: {
      Ready: `False ${reason}`,
      Healthy: `False ${reason}`,
      Reconciling: 'False Settled',
    },
    message,
    blockedBy: null,
  };
}
