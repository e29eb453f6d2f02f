/** Signal handlers of the `proxy` workflow. They change state synchronously and never wait. */
import { defineSignal, setHandler } from '@temporalio/workflow';
import { requestForceDelete, requestRetry, wake } from './accept.ts';
import { signalNames, type DesiredChanged, type HealthSignal } from './contract/messages.ts';
import { applyHealth, type ProxyState } from './state.ts';

export const desiredChangedSignal = defineSignal<[DesiredChanged]>(signalNames.desiredChanged);
export const healthSignal = defineSignal<[HealthSignal]>(signalNames.health);
export const providerChangedSignal = defineSignal(signalNames.providerChanged);
export const forceDeleteSignal = defineSignal(signalNames.forceDelete);
export const retrySignal = defineSignal(signalNames.retry);

/** Registers all handlers over `state`. */
export function applySignals(state: ProxyState): void {
  // What changed is read again from the object: a signal may be late, doubled or out of order.
  setHandler(desiredChangedSignal, () => {
    state.refreshWanted = true;
  });
  setHandler(healthSignal, (signal) => {
    applyHealth(state, signal);
  });
  setHandler(providerChangedSignal, () => {
    wake(state);
    if (state.trouble?.scope === 'provider') state.trouble.nextAtMs = 0;
  });
  setHandler(forceDeleteSignal, () => {
    requestForceDelete(state);
  });
  setHandler(retrySignal, () => {
    requestRetry(state);
  });
}
