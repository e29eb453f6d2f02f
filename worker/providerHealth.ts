/** ProviderHealth beside the checks: whether the last edit of the providers config was accepted, and what metrics show. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { ProviderHealthStatus } from '../api/providerHealth.ts';
import { withCondition } from '../activities/kubernetes/healthStatus.ts';
import type { ProviderHealthRecords } from '../activities/kubernetes/healthRecords.ts';

/** Writes the condition ConfigValid of one provider; `problem` null means valid. Never throws. */
export async function publishConfigState(
  { health, log }: { health: ProviderHealthRecords; log: Logger },
  provider: string,
  problem: string | null,
): Promise<void> {
  try {
    await health.update(provider, (status) => ({
      ...withCondition(status, configValid(problem), new Date()),
      type: 'proxmox',
    }));
  } catch (error) {
    log.warn({ provider, err: error }, 'ProviderHealth not written');
  }
}

/** Every ProviderHealth, for metrics: `null` when Kubernetes does not give them within two seconds. Never throws. */
export async function readForMetrics(
  health: Pick<ProviderHealthRecords, 'list'>,
  withinMs = 2_000,
): Promise<Map<string, ProviderHealthStatus> | null> {
  const late = new AbortController();
  const tooLate = delay(withinMs, null, { signal: late.signal }).catch(() => null);
  const listed = health.list().catch(() => null);
  const seen = await Promise.race([listed, tooLate]);
  late.abort();
  return seen;
}

function configValid(problem: string | null): Parameters<typeof withCondition>[1] {
  return {
    type: 'ConfigValid',
    status: problem === null ? 'True' : 'False',
    reason: problem === null ? 'Accepted' : 'Rejected',
    message: problem ?? 'the providers config as it stands is in force',
  };
}
