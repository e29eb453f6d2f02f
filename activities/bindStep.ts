/** One attempt of a step as Temporal runs it: what is around every step, whichever it is. */
import { Context } from '@temporalio/activity';
import type { Logger } from 'pino';
import { z } from 'zod';
import { slackMs } from '../workflows/contract/budgets.ts';
import { stepTraits, type StepName } from '../workflows/contract/stepTable.ts';
import { stayAlive, type AliveAttempt } from './attempt.ts';
import type { StepContext, StepDeps } from './deps.ts';
import { handOver, toFailure } from './failure.ts';
import { withinLockBudget } from './lockBudget.ts';
import { outcomeOf, withStepSpan, type StepObserver, type StepOutcome } from './observe.ts';
import { NotYet, ProviderError } from './providerError.ts';

/** Reads the facts out of any step's input; what else is in it stays out of logs and spans. */
const stepFactsSchema = z.object({
  provider: z.string().optional(),
  vmid: z.number().nullish(),
  vmName: z.string().optional(),
  node: z.string().optional(),
  ref: z.object({ namespace: z.string(), name: z.string() }).nullish(),
  plan: z.object({ provider: z.string(), vmName: z.string(), node: z.string() }).optional(),
  vm: z
    .object({ provider: z.string(), vmid: z.number(), name: z.string(), node: z.string() })
    .optional(),
});

/** What the process around the steps is told, and tells. */
export interface ProcessHooks {
  observer: StepObserver;
  /** Aborted when the process is to end: waits are handed over at once, short steps finish. */
  shutdown: AbortSignal;
}

/** One attempt: context, sign of life, span, one log line, and the error through the one door. */
export function bindStep<Deps extends StepDeps, Input, Result>(
  deps: Deps,
  { observer, shutdown }: ProcessHooks,
  step: StepName,
  run: (deps: Deps, context: StepContext, input: Input) => Promise<Result>,
): (input: Input) => Promise<Result> {
  return async (input) => {
    const temporal = Context.current();
    const { cancellationSignal } = temporal;
    const facts = factsOf(input);
    const { queue, effect } = stepTraits[step];
    const waits = queue === 'wait';
    const signal = waits ? AbortSignal.any([cancellationSignal, shutdown]) : cancellationSignal;
    const alive = stayAlive(temporal, effect === 'write', () => deps.clock.now());
    const context = contextOf(deps, step, facts, signal, alive);
    const startedMs = deps.clock.now();
    const measure = (outcome: StepOutcome, budgetExceeded: boolean): number => {
      const seconds = (deps.clock.now() - startedMs) / 1000;
      observer.onStep({
        step,
        provider: String(facts.provider ?? ''),
        outcome,
        seconds,
        budgetExceeded,
      });
      return seconds;
    };
    try {
      const result = await withStepSpan(step, facts, () =>
        run(deps, context, input).catch((error: unknown) => logVanished(context.log, error)),
      );
      context.log.debug({ seconds: measure('ok', false) }, 'step finished');
      return result;
    } catch (thrown) {
      const { budgetScale } = deps.pace;
      const error = withinLockBudget(thrown, input, deps.clock.now(), budgetScale);
      const cancelled = signal.aborted;
      const exceeded = error instanceof ProviderError && error.facts.reason === 'BudgetExceeded';
      const seconds = measure(outcomeOf(error, cancelled), exceeded);
      logFailure(context.log, error, cancelled, seconds);
      if (cancelled && !cancellationSignal.aborted) throw handOver();
      throw toFailure(error, cancelled);
    } finally {
      alive.stop();
    }
  };
}

/** Fields of an input that every log line and span may name. */
type StepFacts = Record<string, string | number>;

function factsOf(input: unknown): StepFacts {
  const found = stepFactsSchema.safeParse(input);
  if (!found.success) return {};
  const { plan, vm, ref, vmid, vmName, node, provider } = found.data;
  const facts = {
    provider: provider ?? plan?.provider ?? vm?.provider,
    vmid: vmid ?? vm?.vmid,
    name: vm?.name ?? plan?.vmName ?? vmName,
    node: vm?.node ?? plan?.node ?? node,
    proxy: ref ? `${ref.namespace}/${ref.name}` : undefined,
  };
  const known: StepFacts = {};
  for (const [field, value] of Object.entries(facts)) {
    if (value !== undefined && value !== null) known[field] = value;
  }
  return known;
}

function contextOf(
  deps: StepDeps,
  step: StepName,
  facts: StepFacts,
  signal: AbortSignal,
  alive: AliveAttempt,
): StepContext {
  const context = Context.current();
  const { info } = context;
  const deadlineMs = info.currentAttemptScheduledTimestampMs + info.startToCloseTimeoutMs;
  const { attempt, workflowExecution } = info;
  return {
    call: {
      signal,
      writesUntilMs: deadlineMs - slackMs / 2,
      answeredAtMs: () => alive.answeredAtMs(),
    },
    scheduledAtMs: info.scheduledTimestampMs,
    heartbeat: (details) => {
      context.heartbeat(details);
    },
    log: deps.log.child({ step, ...facts, workflowId: workflowExecution?.workflowId, attempt }),
  };
}

/** Inside the step's span, as every line about a VM. */
function logVanished(log: Logger, error: unknown): never {
  if (error instanceof ProviderError && error.facts.reason === 'VmVanished') {
    log.debug({ reason: error.message }, 'proxmox vm not found');
  }
  throw error;
}

function logFailure(log: Logger, error: unknown, cancelled: boolean, seconds: number): void {
  if (cancelled) log.debug({ seconds }, 'step cancelled');
  else if (error instanceof NotYet)
    log.debug({ seconds, why: error.message }, 'step not ready yet');
  else if (error instanceof ProviderError) {
    const { errorClass, facts, message } = error;
    log.info({ ...facts, class: errorClass, error: message, seconds }, 'step failed');
  } else log.error({ err: error, seconds }, 'step failed unexpectedly');
}
