/** Spans of a VM's whole life, as a worker makes them (specification, Tracing). */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import type { ProviderSteps } from '../../activities/index.ts';
import { tokenSecret } from '../support/stepFixture.ts';
import type { StepRig } from '../support/stepHarness.ts';
import { canary, instance, stepSpans, tracedLife, type TracedLife } from '../support/tracedLife.ts';

let life: TracedLife;
let rig: StepRig;
let spans: ReadableSpan[];
before(async () => {
  life = await tracedLife();
  ({ rig, spans } = life);
});
after(() => life.close());

describe('spans', () => {
  it('are one a step, named after it, and one a request, named after its method', () => {
    const kinds = new Set(spans.map(({ name }) => name.replace(/^provider\..*/, 'provider.')));
    const methods = ['HTTP DELETE', 'HTTP GET', 'HTTP POST', 'HTTP PUT'];
    assert.deepEqual([...kinds].sort(), [...methods, 'provider.']);
    const requests = spans.length - stepSpans(spans).length;
    assert.equal(requests, rig.simulator.requests.length);
  });

  it('of a request are children of the span of their step, and nothing is counted twice', () => {
    const steps = new Map(stepSpans(spans).map((span) => [span.spanContext().spanId, span.name]));
    for (const span of spans) {
      if (steps.has(span.spanContext().spanId)) assert.equal(span.parentSpanContext, undefined);
      else assert.ok(steps.has(span.parentSpanContext?.spanId ?? ''), span.name);
    }
    const put = spans.find(({ name }) => name === 'HTTP PUT');
    const name: keyof ProviderSteps = 'configureVm';
    assert.equal(steps.get(put?.parentSpanContext?.spanId ?? ''), `provider.${name}`);
  });

  it('of a request have method, URL, server and status', () => {
    for (const { name, attributes } of spans.filter((span) => span.name.startsWith('HTTP'))) {
      assert.equal(`HTTP ${String(attributes['http.request.method'])}`, name);
      assert.match(String(attributes['url.full']), /^https:\/\/127\.0\.0\.1:\d+\/api2\/json\//);
      assert.equal(attributes['server.address'], '127.0.0.1');
      assert.equal(typeof attributes['server.port'], 'number');
      assert.equal(typeof attributes['http.response.status_code'], 'number');
    }
  });

  it('of a step name provider, VM and node; of a failed one the reason, too', () => {
    const start = stepSpans(spans).find(({ name }) => name === 'provider.startVm');
    const { attributes } = start ?? assert.fail('no span of startVm');
    for (const field of instance) assert.ok(field in attributes, field);
    const failed = stepSpans(spans).find(
      ({ attributes: seen }) => seen['error.type'] === 'VmVanished',
    );
    assert.ok(failed);
  });

  it('record neither the token nor cloud-init', () => {
    const recorded = JSON.stringify(spans.map(({ attributes, events }) => [attributes, events]));
    assert.ok(!recorded.includes(canary));
    assert.ok(!recorded.includes(tokenSecret));
  });
});
