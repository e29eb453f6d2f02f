/** What the `provider` workflow makes of the outcomes of its checks. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  beginProvider,
  isGone,
  noteRound,
  providerDetails,
  shownTargets,
  type NodeOutcome,
} from '../../workflows/providerState.ts';
import { providerGoneMs } from '../../workflows/contract/budgets.ts';
import type { CheckSettings, TargetHealth } from '../../workflows/contract/providerSteps.ts';

const settings: CheckSettings = {
  address: 'https://192.0.2.1:8006',
  nodes: ['a', 'b'],
  intervalMs: 60_000,
  timeoutMs: 15_000,
};

function seen(node: string, changes: Partial<TargetHealth> = {}): NodeOutcome {
  const target: TargetHealth = {
    name: node,
    address: settings.address,
    ready: true,
    reason: 'Reachable',
    message: '',
    latencyMs: 7,
    checkedAt: '2026-11-29T12:00:00Z',
    details: { kernel: '6.18' },
    ...changes,
  };
  return { kind: 'checked', node, target, settings };
}

const nobody = {
  kind: 'failed',
  reason: 'ProviderNotServed',
  message: 'no worker took this step within a minute',
} as const;

describe('rounds of checks', () => {
  it('a node nobody could check is not ready, and keeps the facts of the last check', () => {
    const state = beginProvider({ provider: 'pve', settings });
    noteRound(state, [seen('a'), { ...nobody, node: 'b' }], 1_000);
    noteRound(
      state,
      [
        { ...nobody, node: 'a' },
        { ...nobody, node: 'b' },
      ],
      2_000,
    );
    const [a, b] = shownTargets(state);
    assert.deepEqual(a, {
      name: 'a',
      address: settings.address,
      ready: false,
      reason: 'ProviderNotServed',
      message: nobody.message,
      latencyMs: null,
      checkedAt: '2026-11-29T12:00:00Z',
      details: { kernel: '6.18' },
    });
    assert.deepEqual([b?.checkedAt, b?.details], [null, {}]);
  });

  it('a node that left the config is forgotten', () => {
    const state = beginProvider({ provider: 'pve', settings });
    noteRound(state, [seen('a'), seen('b')], 0);
    const now = { ...settings, nodes: ['b'] };
    noteRound(state, [{ kind: 'checked', node: 'a', target: null, settings: now }], 0);
    assert.deepEqual(Object.keys(state.targets), ['b']);
    assert.deepEqual(state.settings.nodes, ['b']);
  });

  it('a check that failed for another reason is an APIError, and the provider is served', () => {
    const state = beginProvider({ provider: 'pve', settings });
    noteRound(state, [{ kind: 'failed', node: 'a', reason: 'Internal', message: 'oops' }], 0);
    assert.equal(shownTargets(state)[0]?.reason, 'APIError');
    assert.equal(state.unservedSinceMs, null);
  });

  it('the provider is gone when no check was taken for ten minutes, whatever happened before', () => {
    const state = beginProvider({ provider: 'pve', settings });
    const round = (nowMs: number, ...outcomes: NodeOutcome[]): boolean => {
      noteRound(state, outcomes, nowMs);
      return isGone(state, nowMs);
    };
    assert.equal(round(0, { ...nobody, node: 'a' }), false);
    assert.equal(round(providerGoneMs - 1, { ...nobody, node: 'a' }), false);
    assert.equal(round(providerGoneMs, { ...nobody, node: 'a' }, seen('b')), false);
    assert.equal(round(2 * providerGoneMs, { ...nobody, node: 'a' }), false);
    assert.equal(round(3 * providerGoneMs, { ...nobody, node: 'a' }), true);
  });

  it('a provider without nodes, known from a ProviderHealth only, is gone after ten minutes, too', () => {
    const state = beginProvider({ provider: 'pve', settings: { ...settings, nodes: [] } });
    noteRound(state, [], 0);
    assert.equal(isGone(state, providerGoneMs), true);
  });

  it('what was known goes on in a fresh run', () => {
    const state = beginProvider({ provider: 'pve', settings });
    noteRound(state, [seen('a', { ready: false, reason: 'Timeout' }), seen('b')], 5);
    const { provider, settings: now, ...carried } = state;
    const text = JSON.stringify({ provider, settings: now, carried });
    assert.deepEqual(beginProvider(JSON.parse(text)), state);
  });

  it('a message cannot break the table of the Temporal UI', () => {
    const state = beginProvider({ provider: 'pve', settings });
    noteRound(state, [seen('a', { ready: false, reason: 'APIError', message: 'a | b\nc' })], 0);
    const rows = providerDetails(state)
      .split('\n')
      .filter((line) => line.startsWith('| a '));
    assert.deepEqual(rows, ['| a | APIError | a \\| b c |']);
  });
});
