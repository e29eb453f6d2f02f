/** Which results of probes are told as Events. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { HealthSignal } from '../../workflows/contract/messages.ts';
import { takeHealth } from '../../workflows/accept.ts';
import type { ProxyState } from '../../workflows/state.ts';
import { desiredProxy } from '../support/fakeWorld.ts';
import { state, vm } from '../support/proxyStates.ts';

const ip = '192.0.2.11';

function external(): ProxyState {
  return state({ desired: desiredProxy({ mode: 'External', provider: '', address: ip }) });
}

/** Reasons of the Events that these results make, one after the other. */
function eventsOf(of: ProxyState, ...results: readonly boolean[]): string[] {
  for (const [sequence, healthy] of results.entries()) {
    const signal: HealthSignal = {
      run: 'r',
      sequence,
      ip,
      port: 3128,
      healthy,
      reason: healthy ? 'ProbeSucceeded' : 'ProbeTimeout',
      message: 'no answer in 10 s',
    };
    takeHealth(of, signal);
  }
  return of.events.map(({ reason }) => reason);
}

describe('Events of probes', () => {
  it('an External proxy that was never healthy is told once, with the reason', () => {
    const of = external();
    assert.deepEqual(eventsOf(of, false, false), ['Unhealthy']);
    assert.match(of.events[0]?.message ?? '', /192\.0\.2\.11:3128 \(ProbeTimeout\): no answer/);
  });

  it('an External proxy that is healthy from the start is not told', () => {
    assert.deepEqual(eventsOf(external(), true), []);
  });

  it('an External proxy that becomes healthy after all is told', () => {
    assert.deepEqual(eventsOf(external(), false, true), ['Unhealthy', 'Healthy']);
  });

  it('an External proxy under deletion is not told', () => {
    assert.deepEqual(eventsOf({ ...external(), deleting: true }, false), []);
  });

  it('a VM whose first result is bad is on its way to Ready, and not told', () => {
    assert.deepEqual(eventsOf(state({ next: vm(100123, 'aa', { ip }) }), false), []);
    assert.deepEqual(eventsOf(state({ serving: vm(100123, 'aa', { ip }) }), false), []);
  });
});
