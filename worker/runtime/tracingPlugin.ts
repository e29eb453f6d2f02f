/** Temporal's tracing plugin: always on, for it shapes histories (design §12); without an exporter spans go nowhere. */
import { resourceFromAttributes } from '@opentelemetry/resources';
import { NoopSpanProcessor, type SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { OpenTelemetryPlugin } from '@temporalio/interceptors-opentelemetry-v2';

/** One plugin for a Client, a Worker and the bundle; `spanProcessor` receives workflow and activity spans. */
export function tracingPlugin(
  spanProcessor: SpanProcessor = new NoopSpanProcessor(),
): OpenTelemetryPlugin {
  const resource = resourceFromAttributes({ 'service.name': 'egress-proxies-operator' });
  return new OpenTelemetryPlugin({ resource, spanProcessor });
}
