/** A complete ProxyStatus for tests; state only what matters. */
import type { Condition, ProxyStatus } from '../../workflows/contract/proxy.ts';

export function aStatus(fields: Partial<ProxyStatus> = {}): ProxyStatus {
  return {
    phase: 'Provisioning',
    ip: null,
    healthy: null,
    provider: null,
    providerID: null,
    vmid: null,
    node: null,
    power: null,
    vmName: null,
    workflowID: 'proxy-uid',
    specHash: null,
    desiredSpecHash: null,
    observedGeneration: 1,
    message: '',
    handled: { retry: null, forceDelete: null },
    everReady: false,
    leftovers: [],
    replacement: null,
    timings: {},
    conditions: [],
    ...fields,
  };
}

export function aCondition(fields: Partial<Condition> = {}): Condition {
  return { type: 'Ready', status: 'False', reason: 'Provisioning', message: '', ...fields };
}
