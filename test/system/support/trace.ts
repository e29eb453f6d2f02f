/** The trace of one run of a Proxy's workflow, among all spans that were exported. */
import assert from 'node:assert/strict';
import type { Span } from './collector.ts';

interface Trace {
  /** Where it begins. */
  root: Span;
  spans: Span[];
  /** Names from a span up to the root. Throws when a span on the way was never exported. */
  chainOf: (span: Span) => string[];
}

const run = 'RunWorkflow:proxy';

/** The trace that a start of that workflow by the controller began. Throws when there is none, or several. */
function traceOf(all: readonly Span[], workflowId: string): Trace {
  const runs = new Set(all.filter(({ name }) => name === run).map(({ parentId }) => parentId));
  const roots = all.filter(
    ({ service, spanId, parentId, attributes }) =>
      service === 'egress-proxies-controller' &&
      parentId === null &&
      attributes['temporalWorkflowId'] === workflowId &&
      runs.has(spanId),
  );
  const [root, ...others] = roots;
  assert.ok(root, `no start of ${workflowId} by the controller is the parent of a run`);
  assert.deepEqual(others, []);
  const spans = all.filter(({ traceId }) => traceId === root.traceId);
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  const chainOf = (span: Span): string[] => {
    const names = [span.name];
    for (let at = span; at.parentId !== null;) {
      const parent = byId.get(at.parentId);
      assert.ok(parent, `${names.join(' < ')} < a span that was never exported`);
      names.push(parent.name);
      at = parent;
    }
    return names;
  };
  return { root, spans, chainOf };
}

const stepsOfALife =
  `claimProxy resolvePlacement allocateVmid cloneTemplate uploadSeed configureVm startVm awaitTask
  awaitRunning pollAgent publishStatus stopVm destroyVm deleteSeed releaseProxy`.split(/\s+/);
/** To Proxmox, and to Kubernetes. */
const requestsOfALife = [
  /^HTTP POST https.*\/api2\/json\/nodes\/pv1-1\/qemu\/9001\/clone$/,
  /^HTTP PUT https.*\/qemu\/\d+\/config$/,
  /^HTTP DELETE https.*\/qemu\/\d+\?/,
  /^HTTP PATCH https.*\/proxies\/[^/]+\/status/,
];

/** Every span hangs on the watcher's start; each step of a life ran inside the run, and its requests inside the step. */
export function expectTraceOfALife(all: readonly Span[], workflowId: string): void {
  const { root, spans, chainOf } = traceOf(all, workflowId);
  for (const span of spans) assert.equal(chainOf(span).at(-1), root.name);
  for (const step of stepsOfALife) {
    const chains = spans.filter(({ name }) => name === `provider.${step}`).map(chainOf);
    assert.ok(chains.length > 0, `no span of ${step}`);
    for (const chain of chains) {
      const whole = [`provider.${step}`, `RunActivity:${step}`, `StartActivity:${step}`, run, root.name]; // prettier-ignore
      assert.deepEqual(chain, whole);
    }
  }
  const requests = spans.filter(({ name }) => name.startsWith('HTTP '));
  for (const span of requests) assert.match(chainOf(span)[1] ?? '', /^provider\./);
  const told = requests.map(({ name, attributes }) => `${name} ${attributes['url.full']}`);
  for (const request of requestsOfALife) {
    assert.ok(told.some((one) => request.test(one)), `no ${String(request)}`); // prettier-ignore
  }
}
