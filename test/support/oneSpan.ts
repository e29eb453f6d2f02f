/** A process of its own that is traced as the worker is, with what its environment says. Prints whether its one span was recorded. */
import { trace } from '@opentelemetry/api';
import { startTelemetry } from '../../worker/runtime/telemetry.ts';

const telemetry = startTelemetry('one-span');
trace.getTracer('test').startActiveSpan('provider.oneSpan', (span) => {
  process.stdout.write(span.isRecording() ? 'recorded' : 'not recorded');
  span.end();
});
await telemetry.shutdown();
