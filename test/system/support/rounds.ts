/** Rounds of the collection of orphans of a stack's provider. */
import assert from 'node:assert/strict';
import { ScheduleOverlapPolicy } from '@temporalio/client';
import { request } from 'undici';
import { z } from 'zod';
import type { Proxy } from '../../../api/proxy.ts';
import { providerHealthStatusSchema, type ProviderHealthStatus } from '../../../api/providerHealth.ts'; // prettier-ignore
import { collectScheduleId } from '../../../workflows/contract/messages.ts';
import type { CollectionReport } from '../../../workflows/contract/collection.ts';
import { findProxy, seedsOf, until, vmsOf } from './proxies.ts';
import type { SystemStack } from './stack.ts';

const provider = 'proxmox-local';

/** Triggers a round, as `temporal schedule trigger` does, and waits for its result. */
export async function collectionRound(stack: SystemStack): Promise<CollectionReport> {
  const schedule = stack.temporal.schedule.getHandle(collectScheduleId(provider));
  const before = await actionsOf(stack);
  await schedule.trigger(ScheduleOverlapPolicy.SKIP);
  let report: CollectionReport | undefined;
  await until(stack, 'a round of the collection should end', async () => {
    const fresh = (await actionsOf(stack)).find(
      (one) => !before.some((old) => old.run === one.run),
    );
    assert.ok(fresh, 'it has not begun');
    report = await stack.temporal.workflow.getHandle(fresh.id, fresh.run).result();
  });
  assert.ok(report);
  return report;
}

/** Two rounds within a second have one workflow ID, and runs of their own. */
async function actionsOf(stack: SystemStack): Promise<{ id: string; run: string }[]> {
  const { info } = await stack.temporal.schedule.getHandle(collectScheduleId(provider)).describe();
  return info.recentActions.map(({ action: { workflow } }) => ({
    id: workflow.workflowId,
    run: workflow.firstExecutionRunId,
  }));
}

/** Lets a Proxy go by force while it is paused: VM and seed stay as they are. */
export async function abandon(stack: SystemStack, name: string): Promise<void> {
  const paused = '{"spec":{"paused":true}}';
  await stack.kubectl('patch', 'px', name, '--type=merge', '-p', paused);
  await stack.kubectl('delete', 'px', name, '--wait=false');
  await forceDelete(stack, name);
}

/** The annotation of a forced deletion; returns when the object is gone. */
export async function forceDelete(stack: SystemStack, name: string): Promise<void> {
  await stack.kubectl('annotate', 'px', name, 'egress-proxies.io/force-delete=give-it-up');
  await until(stack, `${name} should be given up`, async () => {
    assert.equal(await findProxy(stack, name), null);
  });
}

/** `status` of the stack's ProviderHealth. */
export async function providerHealth(stack: SystemStack): Promise<ProviderHealthStatus> {
  const text = await stack.kubectl('get', 'ph', provider, '-o', 'json');
  return z.object({ status: providerHealthStatusSchema }).parse(JSON.parse(text)).status;
}

/** Messages of the ProviderHealth's Events with this reason. */
export async function healthEvents(stack: SystemStack, reason: string): Promise<string[]> {
  const text = await stack.kubectl('get', 'events', '-n', 'default', '-o', 'json');
  const { items } = z
    .object({
      items: z.array(
        z.object({
          reason: z.string(),
          message: z.string(),
          involvedObject: z.object({ kind: z.string() }),
        }),
      ),
    })
    .parse(JSON.parse(text));
  return items
    .filter((event) => event.reason === reason && event.involvedObject.kind === 'ProviderHealth')
    .map(({ message }) => message);
}

/** Waits until neither a VM nor a seed of it is left. */
export async function untilCollected(stack: SystemStack, proxy: Proxy): Promise<void> {
  await until(stack, `${proxy.metadata.name} should be collected`, async () => {
    assert.deepEqual(await vmsOf(stack, proxy), []);
    assert.deepEqual(await seedsOf(stack, proxy), []);
  });
}

/** `proxy_operator_gc_orphans` of the stack's provider: its value as text. */
export async function orphansMetric(stack: SystemStack, kind: string): Promise<string | undefined> {
  const { body } = await request(`http://127.0.0.1:${stack.ports.workerMetrics}/metrics`);
  const name = `proxy_operator_gc_orphans{provider="${provider}",kind="${kind}"}`;
  return (await body.text())
    .split('\n')
    .find((line) => line.startsWith(name))
    ?.slice(name.length + 1);
}

/** What the run of a Proxy that is gone ended with. */
export async function outcomeOf(stack: SystemStack, { status }: Proxy): Promise<unknown> {
  const handle = stack.temporal.workflow.getHandle(status.workflowID ?? '');
  const { outcome } = z.object({ outcome: z.string() }).parse(await handle.result());
  return outcome;
}
