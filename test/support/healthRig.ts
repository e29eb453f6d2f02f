/** The steps of the `provider` workflow over the step rig; ProviderHealth objects in memory. */
import assert from 'node:assert/strict';
import { providerHealthStatusSchema, type ProviderHealthStatus } from '../../api/providerHealth.ts';
import { checkNode } from '../../activities/checkNode.ts';
import type { HealthDeps, StepContext } from '../../activities/deps.ts';
import type { ProviderHealthRecords } from '../../activities/kubernetes/healthRecords.ts';
import type { TargetReason } from '../../workflows/contract/errors.ts';
import type { ProxyEvent } from '../../workflows/contract/proxy.ts';
import type { TargetHealth } from '../../workflows/contract/providerSteps.ts';
import { withSteps, type StepRig } from './stepHarness.ts';

export interface HealthRig {
  deps: HealthDeps;
  health: MemoryHealth;
  /** Providers whose Proxies were told to try again. */
  woken: string[];
  /** One check; fails when the node is none of the config. */
  check: (node?: string, context?: Partial<StepContext>) => Promise<TargetHealth>;
}

class MemoryHealth implements ProviderHealthRecords {
  readonly objects = new Map<string, ProviderHealthStatus>();
  /** «Warning Timeout node a: …», oldest first. */
  readonly events: string[] = [];
  /** Events cannot be recorded. */
  refusesEvents = false;

  list(): Promise<Map<string, ProviderHealthStatus>> {
    return Promise.resolve(new Map(this.objects));
  }

  get(provider: string): Promise<ProviderHealthStatus> {
    return Promise.resolve(this.objects.get(provider) ?? providerHealthStatusSchema.parse({}));
  }

  async update(
    provider: string,
    change: (status: ProviderHealthStatus) => ProviderHealthStatus,
  ): Promise<void> {
    this.objects.set(provider, change(await this.get(provider)));
  }

  remove(provider: string): Promise<void> {
    this.objects.delete(provider);
    return Promise.resolve();
  }

  recordEvent(_provider: string, { type, reason, message }: ProxyEvent): Promise<void> {
    if (this.refusesEvents) return Promise.reject(new Error('no Events today'));
    this.events.push(`${type} ${reason} ${message}`);
    return Promise.resolve();
  }
}

export function healthRig(rig: StepRig, timeoutMs = 10_000): HealthRig {
  const health = new MemoryHealth();
  const woken: string[] = [];
  const deps: HealthDeps = {
    ...rig.deps,
    providers: rig.clients,
    health,
    checks: { intervalMs: 60_000, timeoutMs },
    wakeProxies: (provider) => {
      woken.push(provider);
      return Promise.resolve();
    },
  };
  return {
    deps,
    health,
    woken,
    check: async (node = 'pve1', context = {}) => {
      const step = (_deps: unknown, full: StepContext): ReturnType<typeof checkNode> =>
        checkNode(deps, full, { provider: 'pve', node });
      const { target } = await rig.run(step, {}, context);
      if (target === null) throw new Error(`${node} is not in the config`);
      return target;
    },
  };
}

/** Runs a body with a rig for checks; a check has `timeoutMs` (10 s). */
export function withChecks(
  body: (rig: StepRig, health: HealthRig) => Promise<void>,
  options: Parameters<typeof withSteps>[1] = {},
  timeoutMs?: number,
): Promise<void> {
  return withSteps((rig) => body(rig, healthRig(rig, timeoutMs)), options);
}

/** Fails unless the target is not ready for this reason, with a message like this. */
export function expectReason(target: TargetHealth, reason: TargetReason, message: RegExp): void {
  assert.deepEqual([target.reason, target.ready], [reason, false], target.message);
  assert.match(target.message, message);
}
