import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseProxy, ProxyInvalid } from '../../api/proxy.ts';
import type { ProxyStatus } from '../../workflows/contract/proxy.ts';

const metadata = {
  name: 'squid',
  namespace: 'proxies',
  uid: '0f3a0f3a-0000-4000-8000-000000000001',
  generation: 3,
  resourceVersion: '77',
};
const spec = {
  provider: 'proxmox-home',
  placement: { machineType: 'small', image: 'debian-13' },
  cloudInit: '#cloud-config\n',
};

test('a Proxy with nothing but what it needs gets every default', () => {
  const proxy = parseProxy({ metadata, spec });
  assert.deepEqual(proxy.spec, {
    ...spec,
    mode: 'Managed',
    port: 3128,
    healthCheck: {
      intervalSeconds: 30,
      timeoutSeconds: 10,
      failureThreshold: 3,
      successThreshold: 1,
    },
    replaceStrategy: 'CreateFirst',
    deletionPolicy: 'Delete',
    drainSeconds: 30,
    paused: false,
  });
  assert.deepEqual(proxy.metadata, { ...metadata, finalizers: [], annotations: {}, labels: {} });
});

test('a health check with one field keeps it and gets the other defaults', () => {
  const proxy = parseProxy({ metadata, spec: { ...spec, healthCheck: { intervalSeconds: 60 } } });
  assert.equal(proxy.spec.healthCheck.intervalSeconds, 60);
  assert.equal(proxy.spec.healthCheck.timeoutSeconds, 10);
});

test('a Proxy without status is one about which nothing is known', () => {
  const { status } = parseProxy({ metadata, spec });
  const nothing: Omit<ProxyStatus, 'phase' | 'workflowID' | 'observedGeneration'> = {
    ip: null,
    healthy: null,
    provider: null,
    providerID: null,
    vmid: null,
    node: null,
    power: null,
    vmName: null,
    specHash: null,
    desiredSpecHash: null,
    message: '',
    handled: { retry: null, forceDelete: null },
    everReady: false,
    leftovers: [],
    replacement: null,
    timings: {},
    conditions: [],
  };
  assert.deepEqual(status, {
    ...nothing,
    phase: null,
    workflowID: null,
    observedGeneration: null,
  });
});

test('a status as the workflow publishes it comes back unchanged', () => {
  const status: ProxyStatus = {
    phase: 'Running',
    ip: '192.0.2.9',
    healthy: false,
    provider: 'pve',
    providerID: 'vms/100123/proxy-a',
    vmid: 100_123,
    node: 'pv1-1',
    power: 'running',
    vmName: 'proxy-a',
    workflowID: 'proxy-1',
    specHash: 'aa',
    desiredSpecHash: 'bb',
    observedGeneration: 3,
    message: 'VM 100124 on pv1-2 boots',
    handled: { retry: 'today', forceDelete: null },
    everReady: true,
    leftovers: [{ provider: 'p', vmid: 1, node: 'n', upid: 'UPID:n:1', reason: 'qm unlock 1' }],
    replacement: {
      provider: 'p',
      vmid: 100_124,
      node: 'pv1-2',
      vmName: 'proxy-b',
      ip: null,
      specHash: 'bb',
    },
    timings: { cloneTemplate: 12.5 },
    conditions: [{ type: 'Ready', status: 'False', reason: 'AgentSilent', message: 'no address' }],
  };
  const times = { lastTransitionTime: null, observedGeneration: null };
  assert.deepEqual(parseProxy({ metadata, spec, status }).status, {
    ...status,
    conditions: status.conditions.map((condition) => ({ ...condition, ...times })),
  });
});

test('fields of a newer version are dropped, at every depth', () => {
  const proxy = parseProxy({
    kind: 'Proxy',
    future: 1,
    metadata: { ...metadata, managedFields: [] },
    spec: { ...spec, future: 1, placement: { ...spec.placement, rack: 'r1' } },
    status: { vmid: 100_123, future: 1 },
  });
  assert.doesNotMatch(JSON.stringify(proxy), /future|rack|managedFields/);
  assert.equal(proxy.status.vmid, 100_123);
});

test('a status field of an unknown form counts as absent and spoils no other', () => {
  const { status } = parseProxy({
    metadata,
    spec,
    status: {
      phase: 'Hovering',
      conditions: [{ type: 'Ready', status: 'Perhaps' }],
      leftovers: 'many',
      vmid: 100_123,
      handled: { retry: 'today' },
    },
  });
  assert.equal(status.phase, null);
  assert.deepEqual(status.conditions, []);
  assert.deepEqual(status.leftovers, []);
  assert.equal(status.vmid, 100_123);
  assert.deepEqual(status.handled, { retry: 'today', forceDelete: null });
});

test('times come out as text, whether the client made Date objects of them or not', () => {
  const text = '2026-01-02T03:04:05.000Z';
  for (const time of [text, new Date(text)]) {
    const parsed = parseProxy({
      metadata: { ...metadata, deletionTimestamp: time, creationTimestamp: time },
      spec,
    });
    assert.equal(parsed.metadata.deletionTimestamp, text);
    assert.equal(parsed.metadata.creationTimestamp, text);
  }
});

test('an object that is no Proxy is refused by name and field, without its values', () => {
  const bad = { metadata, spec: { ...spec, port: 'canary', cloudInit: 7, paused: 'canary' } };
  assert.throws(
    () => parseProxy(bad),
    (error) => {
      assert.ok(error instanceof ProxyInvalid);
      assert.match(error.message, /^Proxy proxies\/squid cannot be read: spec\.port: /);
      assert.deepEqual(
        error.problems.map((problem) => problem.split(':')[0]),
        ['spec.port', 'spec.cloudInit', 'spec.paused'],
      );
      assert.doesNotMatch(error.message, /canary/);
      return true;
    },
  );
});

for (const [what, object] of [
  ['nothing', undefined],
  ['text', 'Proxy'],
  ['an object without metadata', { spec }],
] as const) {
  test(`${what} is refused as an object without a name`, () => {
    assert.throws(
      () => parseProxy(object),
      /^ProxyInvalid: An object without a name cannot be read/,
    );
  });
}
