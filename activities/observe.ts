/** Span and measurement of one step: opened here and nowhere else (design §11). */
import { SpanStatusCode, trace } from '@opentelemetry/api';
import type { StepName } from '../workflows/contract/stepTable.ts';
import { NotYet, ProviderError } from './providerError.ts';

export type StepOutcome = 'ok' | 'cancelled' | 'notYet' | 'Permanent' | 'NotFound' | 'Transient';

export interface StepMeasurement {
  step: StepName;
  provider: string;
  outcome: StepOutcome;
  seconds: number;
  budgetExceeded: boolean;
}

export interface StepObserver {
  onStep(measurement: StepMeasurement): void;
}

const tracer = trace.getTracer('egress-proxies-operator');

/** Runs one attempt inside its span `provider.<step>`. The error's message is ours, so it may be shown. */
export async function withStepSpan<T>(
  step: StepName,
  attributes: Record<string, string | number>,
  run: () => Promise<T>,
): Promise<T> {
  return tracer.startActiveSpan(`provider.${step}`, { attributes }, async (span) => {
    try {
      return await run();
    } catch (error) {
      if (error instanceof ProviderError) {
        span.setStatus({ code: SpanStatusCode.ERROR, message: error.message });
        span.setAttribute('error.type', error.facts.reason);
      }
      throw error;
    } finally {
      span.end();
    }
  });
}

/** Label `outcome` of the metric of steps; a fault of our own counts as Transient, as it does in Temporal. */
export function outcomeOf(error: unknown, cancelled: boolean): StepOutcome {
  if (cancelled) return 'cancelled';
  if (error instanceof NotYet) return 'notYet';
  return error instanceof ProviderError ? error.errorClass : 'Transient';
}
