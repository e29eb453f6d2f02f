/** States of a Proxy's workflow, as its pure decisions are asked about them. */
import type { VmRecord } from '../../workflows/contract/proxy.ts';
import { initialState, type ProxyState, type Trouble } from '../../workflows/state.ts';
import { desiredProxy, proxyRef } from './fakeWorld.ts';

/** The time of every such question (epoch ms). */
export const now = 1_000_000;

/** A VM of Proxy `proxyRef` for this spec, without an address. */
export function vm(vmid: number, specHash: string, changes: Partial<VmRecord> = {}): VmRecord {
  const name = `proxy-p1-abcdef-11111111-${specHash}`;
  return {
    provider: 'pve',
    vmid,
    name,
    node: 'pv1-1',
    templateNode: 'pv1-1',
    templateVmid: 9001,
    diskKeys: ['scsi0'],
    specHash,
    seedFile: `${name}-seed.iso`,
    seedNodes: ['pv1-1'],
    isoStorage: 'proxy-seeds',
    cloneUpid: null,
    cloneIsOwn: false,
    cloneUnknownAtMs: null,
    seedUpid: null,
    seedUnknownAtMs: null,
    protectionInherited: false,
    everReady: false,
    startedAtMs: null,
    ip: null,
    requestBoundMs: 30_000,
    power: null,
    agent: null,
    markedPolicy: 'Delete',
    ...changes,
  };
}

/** In the way for one more second. */
export function trouble(changes: Partial<Trouble> = {}): Trouble {
  return {
    step: 'allocateVmid',
    subject: 'allocateVmid',
    errorClass: 'Transient',
    scope: 'provider',
    reason: 'Unreachable',
    message: 'no connection',
    remedy: null,
    blockedBy: null,
    sinceMs: now,
    locked: null,
    attempt: 1,
    nextAtMs: now + 1_000,
    ...changes,
  };
}

/** Of a Proxy that was read and has no VM. */
export function state(changes: Partial<ProxyState> = {}): ProxyState {
  return {
    ...initialState(proxyRef, false),
    desired: desiredProxy(),
    objectFound: true,
    refreshWanted: false,
    ...changes,
  };
}

/** Of a VM that was replaced and may go at once. */
export const removal = {
  vm: vm(100005, 'old'),
  purpose: 'replacement' as const,
  drainUntilMs: null,
  seedGoneFrom: [],
  destroyed: false,
  trouble: null,
};

/** A request went through the VM at 192.0.2.11. */
export const healthyNext = [
  {
    ip: '192.0.2.11',
    port: 3128,
    healthy: true,
    reason: 'ProbeSucceeded' as const,
    message: '',
    run: 'r',
    sequence: 1,
  },
];
