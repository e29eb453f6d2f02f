/** OpenTelemetry of a process: spans leave only with an OTLP endpoint in the environment; Temporal's plugin is always on. */
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { OpenTelemetryPlugin } from '@temporalio/interceptors-opentelemetry-v2';
import { processEnvironment } from './env.ts';
import { tracingPlugin } from './tracingPlugin.ts';

export interface Telemetry {
  /** For Client and Worker alike. Without it, histories would differ. */
  plugin: OpenTelemetryPlugin;
  /** Sends the spans that have ended. */
  flush(): Promise<void>;
  /** Sends what is left; does not throw. */
  shutdown(): Promise<void>;
}

/**
 * Starts tracing when `OTEL_EXPORTER_OTLP_ENDPOINT` (or `…_TRACES_ENDPOINT`) is set or an exporter is given; the other
 * `OTEL_*` variables are the SDK's own. Call it before the first request of the process.
 */
export function startTelemetry(
  serviceName: string,
  exporter?: SpanExporter,
  env: Readonly<NodeJS.ProcessEnv> = processEnvironment,
): Telemetry {
  const endpoint =
    env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] || env['OTEL_EXPORTER_OTLP_ENDPOINT'] || null;
  if (exporter === undefined && endpoint === null) {
    const nothing = (): Promise<void> => Promise.resolve();
    return { plugin: tracingPlugin(), flush: nothing, shutdown: nothing };
  }
  const processor = new BatchSpanProcessor(exporter ?? new OTLPTraceExporter());
  const sdk = new NodeSDK({
    resource: resourceFromAttributes({ 'service.name': serviceName }),
    spanProcessors: [processor],
    instrumentations: [httpClientSpans()],
    // Traces only: metrics have their own endpoint, logs go to standard output.
    metricReaders: [],
    logRecordProcessors: [],
  });
  sdk.start();
  return {
    plugin: tracingPlugin(processor),
    flush: () => processor.forceFlush(),
    shutdown: () => sdk.shutdown().catch(() => undefined),
  };
}

/** One span `HTTP <method>` per request, under an operation's span only (specification, Tracing). */
function httpClientSpans(): UndiciInstrumentation {
  return new UndiciInstrumentation({
    requireParentforSpans: true,
    requestHook: (span, { method }) => {
      span.updateName(`HTTP ${method}`);
    },
  });
}
