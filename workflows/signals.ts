/** Signal handlers of the `proxy` workflow. They change state synchronously and never wait. */
import { defineSignal, setHandler } from '@temporalio/workflow';
import {
  noteConflict,
  requestCollection,
  requestForceDelete,
  requestRetry,
  takeHealth,
  takeProviderChange,
} from './accept.ts';
import type { OrphanSignal } from './contract/collection.ts';
import {
  signalNames,
  type DesiredChanged,
  type HealthSignal,
  type Observed,
} from './contract/messages.ts';
import type { ProxyState } from './state.ts';

const desiredChangedSignal = defineSignal<[DesiredChanged]>(signalNames.desiredChanged);
// A person may send these without an input, and a handler that throws would stop the run for good.
const healthSignal = defineSignal<[HealthSignal?]>(signalNames.health);
const observedSignal = defineSignal<[Observed?]>(signalNames.observed);
const providerChangedSignal = defineSignal(signalNames.providerChanged);
const orphanSignal = defineSignal<[OrphanSignal?]>(signalNames.orphan);
const forceDeleteSignal = defineSignal(signalNames.forceDelete);
const retrySignal = defineSignal(signalNames.retry);

/** Registers all handlers over `state`. */
export function applySignals(state: ProxyState): void {
  // What changed is read again from the object: a signal may be late, doubled or out of order.
  setHandler(
    desiredChangedSignal,
    () => {
      state.refreshWanted = true;
    },
    { description: 'the object is read again' },
  );
  setHandler(
    healthSignal,
    (signal) => {
      if (signal) takeHealth(state, signal);
    },
    { description: 'a probe turned good or bad; sent by the prober' },
  );
  setHandler(
    observedSignal,
    (news) => {
      state.lookWanted = true;
      if (news?.heldBy !== undefined) noteConflict(state, news.heldBy);
    },
    { description: 'a VM is looked at afresh; sent by the watch of the provider' },
  );
  setHandler(
    providerChangedSignal,
    () => {
      takeProviderChange(state);
    },
    { description: 'what waits for the provider is tried now; sent by a worker' },
  );
  setHandler(
    orphanSignal,
    (orphan) => {
      if (orphan) requestCollection(state, orphan);
    },
    { description: 'the collection of orphans found a VM that may have to go' },
  );
  setHandler(
    forceDeleteSignal,
    () => {
      requestForceDelete(state, 'signal');
    },
    { description: 'give the VM up and let the object go; on a Proxy under deletion only' },
  );
  setHandler(
    retrySignal,
    () => {
      requestRetry(state, 'signal');
    },
    { description: 'try now what failed or waits' },
  );
}
