/** Temporal's tracing plugin: always on, for it shapes histories (design §12); without an exporter spans go nowhere. */
import { fileURLToPath } from 'node:url';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { NoopSpanProcessor, type SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { OpenTelemetryPlugin } from '@temporalio/interceptors-opentelemetry-v2';
import type { BundleOptions } from '@temporalio/worker';

const untracedQueries = fileURLToPath(new URL('../../workflows/untracedQueries.ts', import.meta.url)); // prettier-ignore

/** One plugin for a Client, a Worker and the bundle; `spanProcessor` receives workflow and activity spans. */
export function tracingPlugin(
  spanProcessor: SpanProcessor = new NoopSpanProcessor(),
): OpenTelemetryPlugin {
  const resource = resourceFromAttributes({ 'service.name': 'egress-proxies-operator' });
  return new TracingPlugin({ resource, spanProcessor });
}

class TracingPlugin extends OpenTelemetryPlugin {
  override configureBundler(options: BundleOptions): BundleOptions {
    const others = options.workflowInterceptorModules ?? [];
    return super.configureBundler({
      ...options,
      workflowInterceptorModules: [untracedQueries, ...others],
    });
  }
}
