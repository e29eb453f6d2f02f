/** Proxies of a stack as tests make, read and await them; a wait that fails shows the last state. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'undici';
import { z } from 'zod';
import { apiVersion, parseProxy, type Proxy } from '../../../api/proxy.ts';
import { messageOf } from '../../../deploy/dev/program.ts';
import { proxyWorkflowId } from '../../../workflows/contract/messages.ts';
import { simulatedIsos, simulatedVms, type SimulatedVm } from './cluster.ts';
import type { SystemStack } from './stack.ts';

/** One VM from nothing to Ready takes some seconds; the rest is room for a machine with other work. */
export const readyMs = 90_000;

export interface ProxyMetadata {
  namespace?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

/** A Proxy as JSON for kubectl, in the namespace `default` unless `metadata` names another one. */
export function proxyManifest(name: string, spec: object, metadata: ProxyMetadata = {}): string {
  return JSON.stringify({
    apiVersion,
    kind: 'Proxy',
    metadata: { name, namespace: 'default', ...metadata },
    spec,
  });
}

export function secretManifest(name: string, data: Record<string, string>): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'default' },
    stringData: data,
  });
}

/** A Managed spec for the local stack's provider, drained at once; `changes` win. */
export function managedSpec(changes: object = {}): object {
  return {
    provider: 'proxmox-local',
    placement: { zone: 'pv1-1', machineType: 'small', image: 'debian-13' },
    cloudInit: '#cloud-config\n',
    drainSeconds: 0,
    ...changes,
  };
}

/**
 * The Proxy, or `null`: `<namespace>/<name>`, or its name alone in the namespace `default`. Asked over HTTP: a kubectl per poll
 * would keep the machine busy.
 */
export async function findProxy(stack: SystemStack, which: string): Promise<Proxy | null> {
  const [name = '', namespace = 'default'] = which.split('/').toReversed();
  const path = `/apis/${apiVersion}/namespaces/${namespace}/proxies/${name}`;
  const answer = await askKubernetes(stack, path);
  if (answer.status === 404) return null;
  assert.equal(answer.status, 200, answer.text);
  return parseProxy(JSON.parse(answer.text));
}

/** As `findProxy`; throws when there is none. */
export async function readProxy(stack: SystemStack, name: string): Promise<Proxy> {
  const proxy = await findProxy(stack, name);
  assert.ok(proxy, `there is no Proxy ${name}`);
  return proxy;
}

async function askKubernetes(
  stack: SystemStack,
  path: string,
): Promise<{ status: number; text: string }> {
  const { url, caFile, identities } = stack.kubernetes;
  const connect = { ca: readFileSync(caFile, 'utf8'), ...identities.admin };
  const dispatcher = new Agent({ connect });
  try {
    const { statusCode, body } = await request(`${url}${path}`, { dispatcher });
    return { status: statusCode, text: await body.text() };
  } finally {
    await dispatcher.close();
  }
}

/**
 * Waits until `check` holds for the Proxy (it neither throws nor returns `false`) and returns it as it then was.
 * `what` completes «the Proxy should …».
 */
export async function untilProxy(
  stack: SystemStack,
  name: string,
  what: string,
  check: (proxy: Proxy) => unknown,
  withinMs: number = readyMs,
): Promise<Proxy> {
  let last: Proxy | undefined;
  await until(
    stack,
    `Proxy ${name} should ${what}`,
    async () => {
      last = await readProxy(stack, name);
      return await check(last);
    },
    withinMs,
    () => `its last status: ${JSON.stringify(last?.status, null, 1)}`,
  );
  assert.ok(last);
  return last;
}

/** Polls `check`; a failure names `what`, why it did not hold, and `state()`. */
export async function until(
  stack: SystemStack,
  what: string,
  check: () => unknown,
  withinMs: number = readyMs,
  state: () => string = () => '',
): Promise<void> {
  const holds = async (): Promise<void> => {
    if ((await check()) === false) throw new Error('it is not so');
  };
  try {
    await stack.eventually(holds, withinMs);
  } catch (error) {
    const text = `${what}; after ${withinMs} ms: ${messageOf(error)}\n${state()}`;
    throw new Error(text, { cause: error });
  }
}

export function untilReady(stack: SystemStack, name: string): Promise<Proxy> {
  const check = ({ status }: Proxy): boolean => status.phase === 'Ready' && status.ip !== null;
  return untilProxy(stack, name, 'become Ready', check);
}

/** The condition of that type; throws when there is none. */
export function conditionOf(
  proxy: Proxy,
  type: string,
): { status: string; reason: string; message: string } {
  const found = proxy.status.conditions.find((condition) => condition.type === type);
  assert.ok(found, `${proxy.metadata.name} has no condition ${type}`);
  const { status, reason, message } = found;
  return { status, reason, message };
}

/**
 * What a template of JSONPath shows of every version of the object (see `findProxy`) from now on; `stop` returns it, each once
 * in a row.
 */
export function watchVersions(
  stack: SystemStack,
  which: string,
  jsonPath: string,
): { stop(): Promise<string[]> } {
  const [name = '', namespace = 'default'] = which.split('/').toReversed();
  const selected = [`--namespace=${namespace}`, `--field-selector=metadata.name=${name}`];
  const watch = stack.watch('get', 'px', ...selected, '-o', `jsonpath=${jsonPath}{"\\n"}`);
  return {
    stop: async () => {
      await watch.stop();
      return watch.lines().filter((line, index, all) => line !== '' && line !== all[index - 1]);
    },
  };
}

/** VMs whose mark names the Proxy, as they stand in the simulator. */
export async function vmsOf(stack: SystemStack, { metadata }: Proxy): Promise<SimulatedVm[]> {
  const all = await simulatedVms(stack.simulator);
  return all.filter(({ config }) => (config['description'] ?? '').includes(metadata.uid));
}

/** The one VM of a Proxy; throws when there are none or several. */
export async function onlyVmOf(stack: SystemStack, proxy: Proxy): Promise<SimulatedVm> {
  const [vm, ...others] = await vmsOf(stack, proxy);
  assert.ok(vm, `${proxy.metadata.name} has no VM`);
  assert.deepEqual(others, [], `${proxy.metadata.name} has several VMs`);
  return vm;
}

/** `<node> <file>` of every seed made for the Proxy. */
export async function seedsOf(stack: SystemStack, { metadata }: Proxy): Promise<string[]> {
  const part = `-${metadata.uid.slice(0, 8)}-`;
  return (await simulatedIsos(stack.simulator))
    .filter(({ name }) => name.includes(part))
    .map(({ node, name }) => `${node ?? 'shared'} ${name}`);
}

/** User-data of every seed made for the Proxy. */
export async function userDataOf(stack: SystemStack, { metadata }: Proxy): Promise<string[]> {
  const part = `-${metadata.uid.slice(0, 8)}-`;
  return (await simulatedIsos(stack.simulator))
    .filter(({ name }) => name.includes(part))
    .map(({ userData }) => userData ?? '');
}

/** No object (so no finalizer), no VM, no seed, no running workflow. */
export async function expectNothingLeft(stack: SystemStack, proxy: Proxy): Promise<void> {
  const { name, namespace, uid } = proxy.metadata;
  await until(stack, `${name} should be gone`, async () => {
    assert.equal(await findProxy(stack, `${namespace}/${name}`), null);
    const { status } = await stack.temporal.workflow.getHandle(proxyWorkflowId(uid)).describe();
    assert.equal(status.name, 'COMPLETED');
  });
  assert.deepEqual(await vmsOf(stack, proxy), []);
  assert.deepEqual(await seedsOf(stack, proxy), []);
}

const eventList = z.object({
  items: z.array(
    z.object({
      type: z.string(),
      reason: z.string(),
      message: z.string(),
      involvedObject: z.object({ uid: z.string().optional() }),
    }),
  ),
});
export type RecordedEvent = z.infer<typeof eventList>['items'][number];

/** Events about the Proxy as `kubectl get events` has them, oldest first. */
export async function eventsOf(stack: SystemStack, proxy: Proxy): Promise<RecordedEvent[]> {
  const where = `--namespace=${proxy.metadata.namespace}`;
  const output = await stack.kubectl('get', 'events', where, '-o=json', '--sort-by=.eventTime');
  const { items } = eventList.parse(JSON.parse(output));
  return items.filter(({ involvedObject }) => involvedObject.uid === proxy.metadata.uid);
}

const discovered = z.object({
  proxies: z.array(z.looseObject({ name: z.string(), address: z.string(), ready: z.boolean() })),
});
export type Discovered = z.infer<typeof discovered>['proxies'][number];

/** What the discovery API lists, as JSON. */
export async function discover(stack: SystemStack, query = ''): Promise<Discovered[]> {
  return discovered.parse(JSON.parse(await discoverText(stack, query, 'application/json'))).proxies;
}

export async function discoverText(
  stack: SystemStack,
  query = '',
  accept = 'text/plain',
): Promise<string> {
  const url = `http://127.0.0.1:${stack.ports.discovery}/v1/proxies${query}`;
  const { statusCode, body } = await request(url, { headers: { accept } });
  const text = await body.text();
  assert.equal(statusCode, 200, text);
  return text;
}
