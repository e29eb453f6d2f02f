/** What the worker tells workflows: probe transitions, VMs and Secrets that differ, a provider that is worth another try. */
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import type { Logger } from 'pino';
import type { KubernetesClient } from '../activities/kubernetes/client.ts';
import { listProxies, proxyPageSize } from '../activities/kubernetes/proxyList.ts';
import {
  providerWorkflowId,
  proxyWorkflowId,
  signalNames,
  type DesiredChanged,
  type HealthSignal,
  type Observed,
} from '../workflows/contract/messages.ts';
import { waitingFor } from './waitingProxies.ts';

/** Without a deadline a Temporal that hangs would gather the signals of all Proxies, hold up the watch of a provider, and a drain. */
const signalDeadlineMs = 10_000;

/** Signals `health`; a run that does not exist is no failure. */
export async function signalHealth(
  client: Client,
  workflowId: string,
  health: HealthSignal,
): Promise<void> {
  await signalIfRunning(client, workflowId, signalNames.health, health);
}

/** Signals `observed`; a run that does not exist is no failure. */
export async function signalObserved(
  client: Client,
  workflowId: string,
  news: Observed,
): Promise<void> {
  await signalIfRunning(client, workflowId, signalNames.observed, news);
}

/** Signals `desiredChanged` for a change outside the object; the same. */
export async function signalDesiredChanged(
  client: Client,
  workflowId: string,
  generation: number,
): Promise<void> {
  const news: DesiredChanged = { generation, deleting: false };
  await signalIfRunning(client, workflowId, signalNames.desiredChanged, news);
}

/** The provider's workflow checks at once, with the config of today. Never throws: it checks soon anyway. */
export async function checkNow(client: Client, provider: string, log: Logger): Promise<void> {
  try {
    await signalIfRunning(client, providerWorkflowId(provider), signalNames.providerChanged);
  } catch (error) {
    log.warn({ provider, err: error }, 'provider changed, but its check was not told');
  }
}

/** Signals `providerChanged` to every Proxy that may wait for the provider. Never throws. */
export async function tellProviderChanged(
  { client, kubernetes, log }: { client: Client; kubernetes: KubernetesClient; log: Logger },
  provider: string,
): Promise<void> {
  try {
    const { objects } = await listProxies(kubernetes, proxyPageSize);
    const waiting = waitingFor(provider, objects);
    for (const uid of waiting) {
      await signalIfRunning(client, proxyWorkflowId(uid), signalNames.providerChanged);
    }
    log.info({ provider, proxies: waiting.length }, 'provider changed, its Proxies try again');
  } catch (error) {
    log.warn({ provider, err: error }, 'provider changed, but its Proxies were not told');
  }
}

async function signalIfRunning(
  client: Client,
  workflowId: string,
  signal: string,
  ...args: unknown[]
): Promise<void> {
  try {
    await client.connection.withDeadline(Date.now() + signalDeadlineMs, () =>
      client.workflow.getHandle(workflowId).signal(signal, ...args),
    );
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
}
