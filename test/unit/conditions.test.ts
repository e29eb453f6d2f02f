/** What `kubectl describe` says about a Proxy where nobody wrote a sentence for the case: it must not say what is not so. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { conditionsOf, sentenceOf } from '../../workflows/conditions.ts';
import { statusOf } from '../../workflows/status.ts';
import type { ProxyState } from '../../workflows/state.ts';
import { now, removal, state, trouble, vm } from '../support/proxyStates.ts';

/** `<status> <reason>: <message>` */
function conditionOf(of: ProxyState, type: string): string {
  const found = conditionsOf(of).find((one) => one.type === type);
  return `${found?.status} ${found?.reason}: ${found?.message}`;
}

describe('conditions of a Proxy', () => {
  it('every condition has a sentence, whatever the state', () => {
    const serving = vm(100123, 'aa', {
      ip: '192.0.2.11',
      agent: { reachable: true, reason: 'AgentAnswered', message: '' },
    });
    for (const one of [
      state(),
      state({ next: vm(100123, 'aa') }),
      state({ serving }),
      state({ trouble: trouble() }),
      state({ deleting: true, removals: [removal] }),
    ])
      for (const { type, message } of conditionsOf(one)) assert.ok(message.length > 5, type);
  });

  it('Reconciling names the task of a clone that is waited for', () => {
    const next = vm(100123, 'aa', { cloneUpid: 'UPID:pv1-1:1' });
    assert.equal(
      conditionOf(state({ next }), 'Reconciling'),
      'True Provisioning: cloning template 9001 to VM 100123 on pv1-1 (task UPID:pv1-1:1)',
    );
  });

  it('a replacement changes no sentence while the old VM serves: each change is a status to write', () => {
    const serving = vm(100123, 'aa', { ip: '192.0.2.11' });
    const cloning = state({ serving, next: vm(100124, 'bb', { cloneUpid: 'UPID:pv1-1:1' }) });
    const started = state({ serving, next: vm(100124, 'bb', { startedAtMs: now }) });
    assert.equal(conditionOf(cloning, 'Reconciling'), conditionOf(started, 'Reconciling'));
  });

  it('a Proxy under deletion is not said to wait for its first probe', () => {
    const deleting = state({ deleting: true, removals: [removal] });
    assert.equal(conditionOf(deleting, 'Healthy'), 'Unknown Deleting: not probed any more');
  });

  it('a VM that is proven gone has neither power nor address in what is shown of a deletion', () => {
    const gone = vm(100123, 'aa', { ip: '192.0.2.11', power: 'running' });
    const there = state({ deleting: true, removals: [{ ...removal, vm: gone }] });
    const after = state({ deleting: true, removals: [{ ...removal, vm: gone, destroyed: true }] });
    assert.equal(statusOf(there).power, 'running');
    assert.match(conditionOf(there, 'Provisioned'), /^True AddressKnown/);
    assert.equal(statusOf(after).power, null);
    assert.equal(conditionOf(after, 'Provisioned'), 'False Deleting: the VM is gone');
    assert.match(
      conditionOf(after, 'Reconciling'),
      /^True Deleting: .* is gone, deleting its seed$/,
    );
  });

  it('the Event of trouble that comes back has the same words, so that it is counted', () => {
    const first = trouble({ remedy: 'do this' });
    const later = trouble({ remedy: 'do this', attempt: 7, sinceMs: now + 60_000 });
    assert.equal(sentenceOf(first), 'no connection; do this');
    assert.equal(sentenceOf(later), sentenceOf(first));
    assert.notEqual(
      conditionOf(state({ trouble: first }), 'Reconciling'),
      conditionOf(state({ trouble: later }), 'Reconciling'),
    );
  });
});
