/** Lets a Proxy go: last Events, then the finalizer. The last step of every deletion. */
import type { ReleaseProxyInput, ReleaseProxyResult } from '../workflows/contract/steps.ts';
import type { Step } from './deps.ts';

/** `released: false`: the object was already gone. */
export const releaseProxy: Step<ReleaseProxyInput, ReleaseProxyResult> = async (
  deps,
  context,
  { ref, events },
) => {
  // Events first: an Event about an object that no longer exists is found by nobody.
  for (const event of events) await deps.kubernetes.recordEvent(ref, event);
  const released = await deps.kubernetes.removeFinalizer(ref);
  context.log.info({ released }, 'proxy released');
  return { released };
};
