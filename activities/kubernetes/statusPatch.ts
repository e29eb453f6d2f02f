/** What has to be sent so that a Proxy's status reads as wanted. Pure. */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { Condition, ConditionType, ProxyStatus } from '../../workflows/contract/proxy.ts';

type Json = Record<string, unknown>;

/** Conditions `publishStatus` owns; every other one belongs to somebody else and is kept as it is. */
const ownedConditions: ReadonlySet<string> = new Set(
  Object.keys({
    Ready: true,
    Provisioned: true,
    Healthy: true,
    Reconciling: true,
    Stalled: true,
    AgentReachable: true,
    CloudInitAvailable: true,
  } satisfies Record<ConditionType, true>),
);

const storedConditions = z
  .array(
    z.looseObject({
      type: z.string(),
      status: z.string().optional(),
      lastTransitionTime: z.string().optional(),
    }),
  )
  .catch([]);
type StoredCondition = z.output<typeof storedConditions>[number];

/**
 * A JSON merge patch for `status`, or `null` when nothing differs. `lastTransitionTime` moves only with a condition's
 * status, `observedGeneration` of the conditions is the status' own, fields and conditions of others stay.
 */
export function statusPatch(current: Json, wanted: ProxyStatus, now: Date): Json | null {
  const conditions = mergeConditions(
    storedConditions.parse(current['conditions'] ?? []),
    wanted,
    now,
  );
  const patch: Json = {};
  for (const [field, value] of Object.entries({ ...wanted, conditions })) {
    const before = withoutEmpty(current[field]);
    const after = withoutEmpty(value);
    if (!isDeepStrictEqual(before, after)) patch[field] = mergeValue(before, after);
  }
  return Object.keys(patch).length === 0 ? null : patch;
}

function mergeConditions(
  stored: readonly StoredCondition[],
  wanted: ProxyStatus,
  now: Date,
): StoredCondition[] {
  const ours = wanted.conditions.map((condition) => ({
    ...condition,
    observedGeneration: wanted.observedGeneration,
    lastTransitionTime: transitionTime(stored, condition, now),
  }));
  return [...ours, ...stored.filter(({ type }) => !ownedConditions.has(type))];
}

function transitionTime(
  stored: readonly StoredCondition[],
  condition: Condition,
  now: Date,
): string {
  const before = stored.find(({ type }) => type === condition.type);
  if (before?.status === condition.status && before.lastTransitionTime !== undefined) {
    return before.lastTransitionTime;
  }
  // Kubernetes writes times to the second.
  return now.toISOString().replace(/\.\d+Z$/, 'Z');
}

/** Absent, `null`, `''`, `[]` and `{}` mean the same in a status; so do objects that hold nothing else. */
function withoutEmpty(value: unknown): unknown {
  if (value === null || value === '') return undefined;
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(withoutEmpty);
  if (!isObject(value)) return value;
  const entries = Object.entries(value)
    .map(([key, inner]) => [key, withoutEmpty(inner)] as const)
    .filter(([, inner]) => inner !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** RFC 7386 merges objects, so keys that are to go must be named with `null`; lists are replaced whole. */
function mergeValue(before: unknown, after: unknown): unknown {
  if (after === undefined) return null;
  if (!isObject(before) || !isObject(after)) return after;
  const gone = Object.keys(before).filter((key) => !(key in after));
  return { ...after, ...Object.fromEntries(gone.map((key) => [key, null])) };
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
