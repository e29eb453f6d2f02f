/**
 * Interceptors, a module of their own in the bundle: queries make no spans. Temporal's plugin draws the ids of a run's
 * spans from one stream of random numbers, which a replay repeats; a query is in no history, so an id drawn for it is
 * drawn once and never again, and every later span would get the id of another one as soon as another worker takes over.
 */
import { context, createContextKey } from '@opentelemetry/api';
import type { WorkflowInterceptors } from '@temporalio/workflow';

/** As `suppressTracing` of @opentelemetry/core sets it: the tracer draws no id below it. Keys are equal by their text. */
const suppressed = createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING');

/** Must come before those of the tracing plugin. */
export function interceptors(): WorkflowInterceptors {
  return {
    inbound: [
      {
        handleQuery: (input, next) =>
          context.with(context.active().setValue(suppressed, true), () => next(input)),
      },
    ],
  };
}
