/** Writes a Proxy's status and records the Events that go with it: the only writer of either. */
import type { PublishStatusInput, PublishStatusResult } from '../workflows/contract/steps.ts';
import type { Step } from './deps.ts';

/**
 * Sends nothing when the status already reads so. An Event that cannot be recorded fails nothing (design §4). Events are
 * recorded also when the object is gone: the last ones of a deletion may be written while its finalizer is being removed.
 */
export const publishStatus: Step<PublishStatusInput, PublishStatusResult> = async (
  deps,
  _context,
  { ref, status, events },
) => {
  const found = await deps.kubernetes.publishStatus(ref, status);
  for (const event of events) await deps.kubernetes.recordEvent(ref, event);
  return { found };
};
