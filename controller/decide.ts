/** What a Proxy as just seen asks of Temporal: start for existence, signal for news, once per value (design §4). Pure. */
import { finalizer, forceDeleteAnnotation, retryAnnotation } from '../api/proxy.ts';
import type { Proxy } from '../api/proxy.ts';
import type { DesiredChanged } from '../workflows/contract/messages.ts';

/** The values this controller has passed on for one UID. Lost on a restart: the object's status then tells again. */
export interface Remembered {
  generation: number;
  deleting: boolean;
  retry: string | null;
  forceDelete: string | null;
}

export type Decision =
  | { kind: 'nothing' }
  /** Start a run unless there is one. Costs a running workflow nothing, not even a history event. */
  | { kind: 'ensure'; remember: Remembered }
  /** Start a run unless there is one, and tell it to read the object again. */
  | { kind: 'news'; news: DesiredChanged; remember: Remembered };

/**
 * News is what the status does not yet show as accepted (generation, deletion, annotations) and what has not been passed on
 * before. A Proxy that nobody has touched since its creation is no news: a fresh run reads it anyway.
 */
export function decide(proxy: Proxy, remembered: Remembered | undefined): Decision {
  const seen = valuesOf(proxy);
  if (!needsWorkflow(proxy)) return { kind: 'nothing' };
  if (!isNews(proxy, seen, remembered)) return { kind: 'nothing' };
  if (remembered === undefined && isPristine(proxy, seen))
    return { kind: 'ensure', remember: seen };
  const news = { generation: seen.generation, deleting: seen.deleting };
  return { kind: 'news', news, remember: seen };
}

/**
 * Whether a run has anything to do for it. Under deletion and without our finalizer it is released already (or was never
 * claimed) and only waits for somebody else: a new run would start, find nothing and end, again and again.
 */
export function needsWorkflow({ metadata }: Proxy): boolean {
  return metadata.deletionTimestamp === undefined || metadata.finalizers.includes(finalizer);
}

/**
 * What was passed on and still counts: nothing, once the object stands where it stood before it (etcd was restored). Its
 * generation will rise to the same numbers again, and mean something else.
 */
export function stillRemembered(
  proxy: Proxy,
  remembered: Remembered | undefined,
): Remembered | undefined {
  if (remembered === undefined) return undefined;
  const seen = valuesOf(proxy);
  const wentBack =
    seen.generation < remembered.generation || (remembered.deleting && !seen.deleting);
  return wentBack ? undefined : remembered;
}

function valuesOf({ metadata }: Proxy): Remembered {
  const deleting = metadata.deletionTimestamp !== undefined;
  return {
    generation: metadata.generation,
    deleting,
    retry: metadata.annotations[retryAnnotation] ?? null,
    forceDelete: metadata.annotations[forceDeleteAnnotation] ?? null,
  };
}

function isNews({ status }: Proxy, seen: Remembered, told: Remembered | undefined): boolean {
  if (seen.generation > (status.observedGeneration ?? 0) && seen.generation !== told?.generation) {
    return true;
  }
  if (seen.deleting && status.phase !== 'Deleting' && told?.deleting !== true) return true;
  return (
    isNewValue(seen.retry, status.handled.retry, told?.retry) ||
    isNewValue(seen.forceDelete, status.handled.forceDelete, told?.forceDelete)
  );
}

function isNewValue(
  value: string | null,
  handled: string | null,
  told: string | null | undefined,
): boolean {
  return value !== null && value !== handled && value !== told;
}

function isPristine({ status }: Proxy, seen: Remembered): boolean {
  return status.phase === null && seen.generation === 1 && !seen.deleting && seen.retry === null;
}
