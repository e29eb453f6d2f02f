import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { fileURLToPath } from 'node:url';
import { after, before, beforeEach, describe, it } from 'node:test';
import { trace } from '@opentelemetry/api';
import { InMemorySpanExporter } from '@opentelemetry/sdk-trace-base';
import { request } from 'undici';
import { runCommand } from '../../../deploy/dev/command.ts';
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

describe('an exporter', () => {
  const program = fileURLToPath(new URL('../../support/oneSpan.ts', import.meta.url));
  const seen: { path: string; body: string }[] = [];
  let collector: Server;
  let endpoint: string;

  before(async () => {
    collector = createServer((incoming, response) => {
      let body = '';
      incoming.setEncoding('utf8').on('data', (part: string) => (body += part));
      incoming.on('end', () => {
        seen.push({ path: incoming.url ?? '', body });
        response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      });
    });
    collector.listen(0, '127.0.0.1');
    await once(collector, 'listening');
    const address = collector.address();
    assert.ok(typeof address === 'object' && address !== null);
    endpoint = `http://127.0.0.1:${address.port}`;
  });
  after(() => {
    collector.close();
    collector.closeAllConnections();
  });
  beforeEach(() => void (seen.length = 0));

  async function run(env: Record<string, string>): Promise<string> {
    const { stdout, stderr } = await runCommand(process.execPath, [program], { env, timeoutMs: 60_000 }); // prettier-ignore
    return stdout === '' ? stderr : stdout;
  }

  for (const [variable, path] of [
    ['OTEL_EXPORTER_OTLP_ENDPOINT', ''],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', '/v1/traces'],
  ] as const) {
    it(`that ${variable} names gets the spans`, async () => {
      assert.equal(await run({ [variable]: `${endpoint}${path}` }), 'recorded');
      assert.deepEqual(
        seen.map(({ path: asked }) => asked),
        ['/v1/traces'],
      );
      assert.match(seen[0]?.body ?? '', /provider\.oneSpan/);
    });
  }

  it('that is not configured gets none: no span is recorded', async () => {
    assert.equal(await run({}), 'not recorded');
  });
});
