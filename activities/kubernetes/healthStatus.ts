/** What a ProviderHealth is to say, from what it said and what was seen. Pure. */
import type { ConditionRecord } from '../../api/conditions.ts';
import type { ProviderHealthStatus, ProviderTarget } from '../../api/providerHealth.ts';
import type { ProxyEvent } from '../../workflows/contract/proxy.ts';
import type { TargetHealth } from '../../workflows/contract/providerSteps.ts';

/** The status with these targets; a target that is as ready as before keeps its `lastTransition`. */
export function withTargets(
  status: ProviderHealthStatus,
  targets: readonly TargetHealth[],
  now: Date,
): ProviderHealthStatus {
  const first = targets.find(({ ready }) => !ready);
  const ready = targets.filter((target) => target.ready).length;
  return {
    ...status,
    type: 'proxmox',
    ready: `${ready}/${targets.length}`,
    reason: first?.reason ?? 'Reachable',
    targets: targets.map((target) => {
      const before = status.targets.find(({ name }) => name === target.name);
      return asTarget(target, before, now);
    }),
  };
}

/** Names of targets that are ready and were not before; one that was never checked counts as not ready. */
export function recoveredTargets(
  { targets }: ProviderHealthStatus,
  seen: readonly TargetHealth[],
): string[] {
  const before = new Set(targets.filter(({ ready }) => ready).map(({ name }) => name));
  return seen.filter(({ name, ready }) => ready && !before.has(name)).map(({ name }) => name);
}

/** What to tell of the change: a target that is not ready any more, or for another reason, or is ready again. */
export function targetEvents(
  { targets }: ProviderHealthStatus,
  seen: readonly TargetHealth[],
): ProxyEvent[] {
  return seen.flatMap(({ name, ready, reason, message }): ProxyEvent[] => {
    const before = targets.find((target) => target.name === name);
    if (before === undefined ? ready : before.ready === ready && before.reason === reason)
      return [];
    const type = ready ? 'Normal' : 'Warning';
    const text = ready ? 'VMs can be made there again' : message;
    return [{ type, reason, action: 'checkNode', message: `node ${name}: ${text}` }];
  });
}

/** The status with this condition; its time moves only with its status. */
export function withCondition(
  status: ProviderHealthStatus,
  condition: Pick<ConditionRecord, 'type' | 'status' | 'reason' | 'message'>,
  now: Date,
): ProviderHealthStatus {
  const before = status.conditions.find(({ type }) => type === condition.type);
  const kept = before?.status === condition.status ? before.lastTransitionTime : null;
  const changed: ConditionRecord = {
    ...condition,
    lastTransitionTime: kept ?? toSeconds(now),
    observedGeneration: null,
  };
  const { conditions } = status;
  return {
    ...status,
    conditions:
      before === undefined
        ? [...conditions, changed]
        : conditions.map((one) => (one === before ? changed : one)),
  };
}

/** As Kubernetes writes times. */
function toSeconds(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, 'Z');
}

function asTarget(
  { checkedAt, ...target }: TargetHealth,
  before: ProviderTarget | undefined,
  now: Date,
): ProviderTarget {
  const lastTransition = before?.ready === target.ready ? before.lastTransition : toSeconds(now);
  return { ...target, lastChecked: checkedAt ?? before?.lastChecked ?? null, lastTransition };
}
