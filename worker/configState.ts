/** Whether the last edit of the providers config was accepted, as the ProviderHealth of each provider shows it. */
import type { Logger } from 'pino';
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

function configValid(problem: string | null): Parameters<typeof withCondition>[1] {
  return {
    type: 'ConfigValid',
    status: problem === null ? 'True' : 'False',
    reason: problem === null ? 'Accepted' : 'Rejected',
    message: problem ?? 'the providers config as it stands is in force',
  };
}
