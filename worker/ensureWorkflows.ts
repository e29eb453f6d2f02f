/** The workflows that belong to no Proxy: every worker makes sure of them, and whoever comes first starts them. */
import type { Client } from '@temporalio/client';
import {
  mainTaskQueue,
  probesWorkflowId,
  probesWorkflowType,
  providerWorkflowId,
  providerWorkflowType,
  type ProviderWorkflowInput,
} from '../workflows/contract/messages.ts';
import type { CheckSettings } from '../workflows/contract/providerSteps.ts';

/** One `probes` workflow in all. Throws what Temporal's client throws. */
export async function ensureProbes(client: Client): Promise<void> {
  await client.workflow.start(probesWorkflowType, {
    workflowId: probesWorkflowId,
    taskQueue: mainTaskQueue,
    workflowIdConflictPolicy: 'USE_EXISTING',
    staticSummary: 'sends requests through every Proxy',
  });
}

/** One `provider` workflow for each provider; `settings` count until its first check. Throws as `ensureProbes`. */
export async function ensureProvider(
  client: Client,
  provider: string,
  settings: CheckSettings,
): Promise<void> {
  const input: ProviderWorkflowInput = { provider, settings };
  await client.workflow.start(providerWorkflowType, {
    workflowId: providerWorkflowId(provider),
    taskQueue: mainTaskQueue,
    workflowIdConflictPolicy: 'USE_EXISTING',
    staticSummary: `checks the nodes of provider ${provider}`,
    args: [input],
  });
}
