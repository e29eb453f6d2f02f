/** Writes a Proxy's status and records the Events that go with it: the only writer of either. */
import type { PublishStatusInput, PublishStatusResult } from '../workflows/contract/steps.ts';
import type { Step } from './deps.ts';

/** Sends nothing when the status already reads so. An Event that cannot be recorded fails nothing (design §4). */
export const publishStatus: Step<PublishStatusInput, PublishStatusResult> = async (
  deps,
  _context,
  { ref, status, events },
) => {
  const found = await deps.kubernetes.publishStatus(ref, status);
  if (!found) return { found };
  for (const event of events) await deps.kubernetes.recordEvent(ref, event);
  return { found };
};
