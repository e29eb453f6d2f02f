/** What a forced deletion leaves and says. */
import assert from 'node:assert/strict';
import type { Proxy } from '../../../api/proxy.ts';
import { eventsOf, onlyVmOf, seedsOf } from './proxies.ts';
import type { SystemStack } from './stack.ts';

/** VM and seed are still there, and Event and workflow result name both. */
export async function expectGivenUp(stack: SystemStack, proxy: Proxy): Promise<void> {
  const { vmid, node } = await onlyVmOf(stack, proxy);
  const seedFile = `${proxy.status.vmName}-seed.iso`;
  assert.deepEqual(await seedsOf(stack, proxy), [`${node} ${seedFile}`]);
  const event = (await eventsOf(stack, proxy)).find(({ reason }) => reason === 'ForceDeleted');
  const left = `VM ${vmid} on ${node}, seed ${seedFile}`;
  assert.equal(event?.message, `force delete left behind: ${left}`);
  const { workflowID } = proxy.status;
  const result: unknown = await stack.temporal.workflow.getHandle(workflowID ?? '').result();
  const { provider } = proxy.spec;
  assert.deepEqual(result, {
    outcome: 'ForceDeleted',
    left: [{ provider, vmid, node, upid: null, seedFile }],
  });
}
