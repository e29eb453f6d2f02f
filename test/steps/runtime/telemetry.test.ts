import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { trace } from '@opentelemetry/api';
import { InMemorySpanExporter } from '@opentelemetry/sdk-trace-base';
import { request } from 'undici';
import { createLogger } from '../../../worker/runtime/logger.ts';
import { startTelemetry } from '../../../worker/runtime/telemetry.ts';
import type { Telemetry } from '../../../worker/runtime/telemetry.ts';
import { TestPage } from '../../support/testProxy.ts';

describe('telemetry', () => {
  const exporter = new InMemorySpanExporter();
  const page = new TestPage();
  let telemetry: Telemetry;
  let url: string;

  before(async () => {
    telemetry = startTelemetry('test', exporter, {});
    url = `http://127.0.0.1:${await page.start()}/`;
  });
  after(async () => {
    await page.stop();
    await telemetry.shutdown();
  });
  beforeEach(() => exporter.reset());

  async function ask(): Promise<void> {
    const { body } = await request(url, { headers: { authorization: 'CANARY' } });
    await body.dump();
  }
  async function spans(): Promise<string[]> {
    await telemetry.flush();
    return exporter.getFinishedSpans().map(({ name }) => name);
  }

  it('makes a span of a request under an operation, named after its method', async () => {
    await trace.getTracer('test').startActiveSpan('provider.cloneTemplate', async (span) => {
      await ask();
      span.end();
    });
    assert.deepEqual((await spans()).sort(), ['HTTP GET', 'provider.cloneTemplate']);
    const recorded = exporter.getFinishedSpans().map(({ attributes }) => attributes);
    assert.ok(!JSON.stringify(recorded).includes('CANARY'));
  });

  it('makes none of a request that belongs to nothing', async () => {
    await ask();
    assert.deepEqual(await spans(), []);
  });

  it('puts the ids of the span into the lines logged inside it', () => {
    const lines: string[] = [];
    const log = createLogger('test', 'info', { write: (line: string) => void lines.push(line) });
    const ids = trace.getTracer('test').startActiveSpan('provider.startVm', (span) => {
      log.info({}, 'inside');
      span.end();
      return span.spanContext();
    });
    log.info({}, 'outside');
    assert.match(lines[0] ?? '', new RegExp(`"traceID":"${ids.traceId}","spanID":"${ids.spanId}"`));
    assert.doesNotMatch(lines[1] ?? '', /traceID/);
  });

  it('keeps the plugin on without an exporter, so that histories do not differ', async () => {
    const quiet = startTelemetry('test', undefined, {});
    assert.equal(quiet.plugin.name, telemetry.plugin.name);
    await quiet.shutdown();
  });
});
