/** Health of a provider as `kubectl get ph` and the worker's metrics show it. */
import assert from 'node:assert/strict';
import { request } from 'undici';
import { until } from './proxies.ts';
import type { SystemStack } from './stack.ts';

/** Waits for «TYPE READY REASON» of `kubectl get ph`. */
export async function untilShown(
  stack: SystemStack,
  provider: string,
  columns: string,
  withinMs?: number,
): Promise<void> {
  let shown = '';
  await until(
    stack,
    `${provider} should show ${columns}`,
    async () => {
      shown = await stack.kubectl('get', 'ph', provider, '--no-headers');
      assert.equal(shown.trim().split(/\s+/).slice(1, 4).join(' '), columns);
    },
    withinMs,
  );
}

/** «target value» of the gauge `proxy_operator_provider_target_up`. */
export async function targetsUp({ ports }: SystemStack, provider: string): Promise<string[]> {
  const { body } = await request(`http://127.0.0.1:${ports.workerMetrics}/metrics`);
  const line = new RegExp(
    `^proxy_operator_provider_target_up\\{provider="${provider}",target="([^"]+)"\\} (\\d)$`,
    'gm',
  );
  return [...(await body.text()).matchAll(line)].map(([, target, value]) => `${target} ${value}`);
}
