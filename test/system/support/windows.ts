/** Four windows on one Proxy (kubectl, discovery, metrics, Temporal), which are to tell the same story at any time. */
import assert from 'node:assert/strict';
import { request } from 'undici';
import { z } from 'zod';
import type { Proxy } from '../../../api/proxy.ts';
import { messageOf } from '../../../deploy/dev/program.ts';
import {
  proxyWorkflowId,
  stateQueryName,
  type ProxyStateView,
} from '../../../workflows/contract/messages.ts';
import { discover, discoverText, findProxy, readProxy, until, untilProxy } from './proxies.ts';
import type { SystemStack } from './stack.ts';
import type { Told } from './told.ts';

/** Waits until all four tell that story of the one Proxy of the stack, at one and the same version of the object. */
export async function tellsTheSame(stack: SystemStack, name: string, told: Told): Promise<Proxy> {
  const differences = new Set<string>();
  const agree = async (proxy: Proxy): Promise<void> => {
    try {
      await expectStory(stack, proxy, told);
    } catch (error) {
      differences.add(messageOf(error));
      throw error;
    }
  };
  try {
    return await untilProxy(stack, name, `be told to be ${told.phase}`, agree);
  } catch (error) {
    const all = [...differences].join('\n— ');
    throw new Error(`${messageOf(error)}\nAll that differed meanwhile:\n— ${all}`, {
      cause: error,
    });
  }
}

async function expectStory(stack: SystemStack, proxy: Proxy, told: Told): Promise<void> {
  expectStatus(proxy, told);
  await expectColumns(stack, proxy);
  await expectDiscovery(stack, proxy);
  assert.deepEqual(await proxiesByPhase(stack), { [`proxmox-local ${told.phase}`]: 1 });
  await expectTemporal(stack, proxy, told);
  const { resourceVersion } = (await readProxy(stack, proxy.metadata.name)).metadata;
  assert.equal(resourceVersion, proxy.metadata.resourceVersion, 'it changed meanwhile');
}

/** The same of a Proxy that is gone: nobody speaks of it any more, and its run has ended. */
export async function tellNothing(stack: SystemStack, { metadata, status }: Proxy): Promise<void> {
  await until(stack, `nothing should be told of ${metadata.name}`, async () => {
    assert.equal(await findProxy(stack, metadata.name), null);
    assert.deepEqual(await discover(stack, '?ready=all'), []);
    assert.deepEqual(await proxiesByPhase(stack), {});
    const named = `ProxyName = "${metadata.namespace}/${metadata.name}"`;
    assert.deepEqual(await stack.workflows(`${named} AND ExecutionStatus = "Running"`), []);
    const handle = stack.temporal.workflow.getHandle(status.workflowID ?? '');
    assert.equal((await handle.describe()).status.name, 'COMPLETED');
  });
}

function expectStatus({ status }: Proxy, { phase, conditions, message, vm = {} }: Told): void {
  assert.equal(status.phase, phase);
  const shown = new Map(status.conditions.map(({ type, status: is, reason }) => [type, `${is} ${reason}`])); // prettier-ignore
  const named = Object.keys(conditions).map((type) => [type, shown.get(type)]);
  assert.deepEqual(Object.fromEntries(named), conditions);
  assert.equal(shown.get('Ready')?.startsWith('True'), phase === 'Ready');
  if (message === '') assert.equal(status.message, '');
  else assert.match(status.message, message);
  const { ip, node, vmid } = status;
  assert.deepEqual({ ip, node, vmid, ...vm }, { ip, node, vmid });
}

/** The cells of `kubectl get px`, cut by the header: an empty cell is only blanks. */
export async function cells(stack: SystemStack, ...args: string[]): Promise<string[]> {
  const [header = '', row = ''] = (await stack.kubectl('get', 'px', ...args)).split('\n');
  const starts = [...header.matchAll(/\S+ */g)].map((match) => match.index);
  return starts.map((start, index) => row.slice(start, starts[index + 1]).trim());
}

/** `kubectl get px -o wide`, column by column. */
export async function expectColumns(
  stack: SystemStack,
  { metadata, spec, status }: Proxy,
): Promise<void> {
  const wide = await cells(stack, metadata.name, '-o', 'wide');
  const [age = ''] = wide.splice(6, 1);
  assert.match(age, /^(\d+[smh])+$/);
  const healthy = status.conditions.find(({ type }) => type === 'Healthy')?.status;
  const narrow = [metadata.name, spec.mode, spec.provider, status.phase, status.ip ?? '', healthy];
  const { node, vmid, workflowID, message } = status;
  assert.deepEqual(wide, [...narrow, node ?? '', String(vmid ?? ''), workflowID, message]);
}

/** Listed while it has an address and stays; among those to use exactly while it is Ready. */
async function expectDiscovery(
  stack: SystemStack,
  { metadata, spec, status }: Proxy,
): Promise<void> {
  const { phase, ip, healthy } = status;
  const shown = ip === null || phase === 'Deleting' ? [] : [{ phase, ip, healthy }];
  const ready = phase === 'Ready' ? `${ip}:${spec.port}\n` : '';
  const listed = await discover(stack, '?ready=all');
  assert.deepEqual(
    listed.map((one) => ({ phase: one['phase'], ip: one['ip'], healthy: one['healthy'] })),
    shown,
    `discovery of ${metadata.name}`,
  );
  assert.equal(await discoverText(stack), ready);
}

/** `proxy_operator_proxies` of the controller: a number by `<provider> <phase>`. */
async function proxiesByPhase({ ports }: SystemStack): Promise<Record<string, number>> {
  const { body } = await request(`http://127.0.0.1:${ports.controllerMetrics}/metrics`);
  const line = /^proxy_operator_proxies\{provider="([^"]*)",phase="([^"]*)"\} (\d+)$/gm;
  const found = [...(await body.text()).matchAll(line)];
  return Object.fromEntries(found.map(([, provider, phase, count]) => [`${provider} ${phase}`, Number(count)])); // prettier-ignore
}

const metadataAnswer = z.object({ currentDetails: z.string() });

/** Search attributes as listed and as described, the query `state`, and the current details. */
async function expectTemporal(
  stack: SystemStack,
  { metadata, spec, status }: Proxy,
  { phase, blockedBy }: Told,
): Promise<void> {
  const workflowId = proxyWorkflowId(metadata.uid);
  assert.equal(status.workflowID, workflowId);
  const { node, vmid, ip, vmName, message } = status;
  const proxyName = `${metadata.namespace}/${metadata.name}`;
  const handle = stack.temporal.workflow.getHandle(workflowId);
  const { typedSearchAttributes } = await handle.describe();
  const attributes = typedSearchAttributes
    .getAll()
    .map(({ key, value }) => [key.name, value])
    .filter(([key]) => String(key).startsWith('Proxy'));
  const expected = {
    ProxyName: proxyName,
    ProxyPhase: phase,
    ProxyProvider: spec.provider,
    ...(node === null ? {} : { ProxyNode: node }),
    ...(vmid === null ? {} : { ProxyVmid: vmid }),
    ...(blockedBy === null ? {} : { ProxyBlockedBy: blockedBy }),
  };
  assert.deepEqual(Object.fromEntries(attributes), expected);
  const blocked = blockedBy === null ? 'ProxyBlockedBy IS NULL' : `ProxyBlockedBy = "${blockedBy}"`;
  const query = `ProxyName = "${proxyName}" AND ProxyPhase = "${phase}" AND ${blocked}`;
  const rows = await stack.workflows(`${query} AND ExecutionStatus = "Running"`);
  assert.deepEqual(rows.map((row) => row.workflowId), [workflowId]); // prettier-ignore

  const view = await handle.query<ProxyStateView>(stateQueryName);
  const vm = view.serving ?? view.next ?? view.removals[0];
  assert.deepEqual(
    [view.phase, view.message, vm?.vmid ?? null, vm?.node ?? null, vm?.ip ?? null],
    [phase, message, vmid, node, ip],
  );
  const { currentDetails } = metadataAnswer.parse(
    await handle.query('__temporal_workflow_metadata'),
  );
  const lines = [`**${proxyName}** — ${phase}`];
  if (vm) lines.push(`VM \`${vmid}\` (\`${vmName}\`) on \`${node}\`, address ${ip ?? 'not known yet'}`); // prettier-ignore
  // The status begins with the step and ends with the remedy; the details have places of their own for both.
  lines.push(message.replace(/^\w+: /, '').replace(/ — .*/, ''));
  for (const line of lines) assert.ok(currentDetails.includes(line), `${line}\nis not in\n${currentDetails}`); // prettier-ignore
}
