/** Shows in ProviderHealth whether the last edit of the providers config was accepted. */
import type { Logger } from 'pino';
import { apiVersion, group, version } from '../api/proxy.ts';
import { providerHealthKind, providerHealthPlural } from '../api/providerHealth.ts';
import type { KubernetesClient } from '../activities/kubernetes/client.ts';
import { answerText } from '../activities/kubernetes/failure.ts';

const collection = `/apis/${group}/${version}/${providerHealthPlural}`;

/** Writes the condition ConfigValid of one provider; `problem` null means valid. Never throws. */
export async function publishConfigState(
  { kubernetes, log }: { kubernetes: KubernetesClient; log: Logger },
  provider: string,
  problem: string | null,
): Promise<void> {
  try {
    await kubernetes.send({
      method: 'POST',
      path: collection,
      body: { apiVersion, kind: providerHealthKind, metadata: { name: provider } },
    });
    const answer = await kubernetes.send({
      method: 'PATCH',
      path: `${collection}/${provider}/status`,
      body: { status: { type: 'proxmox', conditions: [configValid(problem)] } },
    });
    if (answer.status !== 200) {
      log.warn({ provider, answer: answerText(answer) }, 'ProviderHealth not written');
    }
  } catch (error) {
    log.warn({ provider, err: error }, 'ProviderHealth not written');
  }
}

function configValid(problem: string | null): Record<string, string> {
  return {
    type: 'ConfigValid',
    status: problem === null ? 'True' : 'False',
    reason: problem === null ? 'Accepted' : 'Rejected',
    message: problem ?? 'the providers config as it stands is in force',
    lastTransitionTime: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
  };
}
