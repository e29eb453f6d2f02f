/** Search attributes of design §6, from state. Pure but for Temporal's key type. */
import { defineSearchAttributeKey, type SearchAttributeUpdatePair } from '@temporalio/common';
import type { ProxyState } from './state.ts';
import { phaseOf } from './status.ts';
import { shownTrouble, shownVm } from './view.ts';

const keys = {
  name: defineSearchAttributeKey('ProxyName', 'KEYWORD'),
  provider: defineSearchAttributeKey('ProxyProvider', 'KEYWORD'),
  phase: defineSearchAttributeKey('ProxyPhase', 'KEYWORD'),
  node: defineSearchAttributeKey('ProxyNode', 'KEYWORD'),
  vmid: defineSearchAttributeKey('ProxyVmid', 'INT'),
  blockedBy: defineSearchAttributeKey('ProxyBlockedBy', 'KEYWORD'),
};

/** All pairs; `null` takes a value away. The caller writes them only when they changed. */
export function searchAttributesOf(state: ProxyState): SearchAttributeUpdatePair[] {
  const vm = shownVm(state);
  return [
    { key: keys.name, value: `${state.ref.namespace}/${state.ref.name}` },
    { key: keys.provider, value: state.desired?.provider || null },
    { key: keys.phase, value: phaseOf(state) },
    { key: keys.node, value: vm?.node ?? null },
    { key: keys.vmid, value: vm?.vmid ?? null },
    { key: keys.blockedBy, value: shownTrouble(state)?.blockedBy ?? null },
  ];
}
