/** Troubles that the object itself shows, before any step of a provider was tried. Pure changes of state. */
import { isOutOfDate, sentenceOf } from './conditions.ts';
import type { StepFailure } from './failures.ts';
import { addEvent, type ProxyState } from './state.ts';
import { nextTrouble } from './trouble.ts';

/** Cloud-init that cannot be read is a wait of its own: the Secret may come (design §4). */
export function noteCloudInit(state: ProxyState): void {
  const problem = state.desired?.cloudInitProblem ?? null;
  if (problem === null) {
    if (state.trouble?.step === 'claimProxy') state.trouble = null;
    return;
  }
  if (state.deleting || state.serving) return;
  const failure: StepFailure = {
    kind: 'failed',
    errorClass: 'Transient',
    message: problem,
    facts: {
      reason: 'CloudInitUnavailable',
      scope: 'proxy',
      remedy: 'create the Secret or correct its name and key',
    },
  };
  const before = state.trouble;
  const trouble = nextTrouble(before, 'claimProxy', failure, Date.now(), false);
  if (before?.reason !== trouble.reason) {
    addEvent(state, 'Warning', trouble.reason, 'claimProxy', sentenceOf(trouble));
  }
  state.trouble = trouble;
}

/**
 * The provider is not in the config of the worker that read the object. Said at once; the step is scheduled all the
 * same, because another worker may serve the provider (design §4: an unknown provider is waited for).
 */
export function noteProvider(state: ProxyState): void {
  const problem = state.desired?.providerProblem ?? null;
  if (problem === null || state.deleting || state.trouble !== null) return;
  // What serves is kept without its provider being asked, unless another VM is wanted.
  if (state.serving && !isOutOfDate(state)) return;
  const failure: StepFailure = {
    kind: 'failed',
    errorClass: 'Transient',
    message: problem,
    facts: { reason: 'ProviderUnknown', scope: 'provider', retryAfterMs: 0 },
  };
  state.trouble = nextTrouble(null, 'resolvePlacement', failure, Date.now(), false);
  addEvent(state, 'Warning', 'ProviderUnknown', 'resolvePlacement', sentenceOf(state.trouble));
}

/** «Nobody took the step» with the reason where it is known: a name that no config has. */
export function explainUnserved(
  { desired }: ProxyState,
  provider: string | undefined,
  failure: StepFailure,
): StepFailure {
  const problem = desired?.providerProblem ?? null;
  if (problem === null || failure.facts.reason !== 'ProviderNotServed') return failure;
  if (provider !== desired?.provider) return failure;
  const { remedy: _remedy, ...facts } = failure.facts;
  return { ...failure, message: `${failure.message}: ${problem}`, facts };
}
