/** What the `provider` workflow remembers between two rounds of checks. Pure. */
import { providerGoneMs } from './contract/budgets.ts';
import { isUnserved, type Reason, type TargetReason } from './contract/errors.ts';
import type { ProviderWorkflowInput } from './contract/messages.ts';
import { plain } from './markdown.ts';
import type { CheckNodeResult, CheckSettings, TargetHealth } from './contract/providerSteps.ts';

/** Plain JSON: handed on by continue-as-new. */
export interface ProviderState {
  provider: string;
  settings: CheckSettings;
  /** By node, as last seen. */
  targets: Record<string, TargetHealth>;
  /** Since when no worker took a check (workflow time, epoch ms); `null` while one does. */
  unservedSinceMs: number | null;
}

/** How the check of one node ended. */
export type NodeOutcome =
  | ({ kind: 'checked'; node: string } & CheckNodeResult)
  | { kind: 'failed'; node: string; reason: Reason; message: string };

/** A fresh start, or what the run before handed on; a field it did not know yet has its default. */
export function beginProvider({
  provider,
  settings,
  carried,
}: ProviderWorkflowInput): ProviderState {
  const fresh: ProviderState = { provider, settings, targets: {}, unservedSinceMs: null };
  return typeof carried === 'object' ? { ...fresh, ...carried } : fresh;
}

/** Takes in the outcomes of one set of checks. */
export function noteRound(
  state: ProviderState,
  outcomes: readonly NodeOutcome[],
  nowMs: number,
): void {
  for (const outcome of outcomes) {
    if (outcome.kind === 'failed') {
      state.targets[outcome.node] = unchecked(state, outcome);
      continue;
    }
    state.settings = outcome.settings;
    if (outcome.target !== null) state.targets[outcome.node] = outcome.target;
  }
  const { nodes } = state.settings;
  for (const node of Object.keys(state.targets)) {
    if (!nodes.includes(node)) delete state.targets[node];
  }
  const served = outcomes.some(
    (outcome) => outcome.kind === 'checked' || !isUnserved(outcome.reason),
  );
  state.unservedSinceMs = served ? null : (state.unservedSinceMs ?? nowMs);
}

/** Nobody has served the provider for so long that it has left (design §4). */
export function isGone({ unservedSinceMs }: ProviderState, nowMs: number): boolean {
  return unservedSinceMs !== null && nowMs - unservedSinceMs >= providerGoneMs;
}

/** Targets for ProviderHealth, in the order of the config. */
export function shownTargets({ settings, targets }: ProviderState): TargetHealth[] {
  return settings.nodes.flatMap((node) => targets[node] ?? []);
}

/** «Current details» of the Temporal UI, as Markdown. */
export function providerDetails(state: ProviderState): string {
  const targets = shownTargets(state);
  const ready = targets.filter((target) => target.ready).length;
  const rows = targets.map(
    ({ name, reason, message }) =>
      `| ${name} | ${reason} | ${plain(message.replaceAll(/\s*\n\s*/g, ' '))} |`,
  );
  const head = `**${state.provider}** — ${ready}/${targets.length} targets ready`;
  return [head, '', '| target | reason | message |', '|---|---|---|', ...rows].join('\n');
}

/** The facts of the last check stay: they say what the node was like when somebody last looked. */
function unchecked(
  { targets, settings }: ProviderState,
  { node, reason, message }: { node: string; reason: Reason; message: string },
): TargetHealth {
  const before = targets[node];
  const shown: TargetReason = isUnserved(reason) ? 'ProviderNotServed' : 'APIError';
  return {
    name: node,
    address: before?.address ?? settings.address,
    ready: false,
    reason: shown,
    message,
    latencyMs: null,
    checkedAt: before?.checkedAt ?? null,
    details: before?.details ?? {},
  };
}
