/** One workflow per provider: checks every node again and again, and publishes what it saw as ProviderHealth. */
import {
  condition,
  continueAsNew,
  defineSignal,
  log,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { signalNames, type ProviderWorkflowInput } from './contract/messages.ts';
import type { TargetHealth } from './contract/providerSteps.ts';
import { readFailure } from './failures.ts';
import {
  beginProvider,
  isGone,
  noteRound,
  providerDetails,
  shownTargets,
  type NodeOutcome,
  type ProviderState,
} from './providerState.ts';
import { runStep } from './steps.ts';
import { startWatching } from './watching.ts';

/** Ends when nobody has served the provider for ten minutes (design §4); a worker that serves it starts it again. */
export async function provider(input: ProviderWorkflowInput): Promise<void> {
  const state = beginProvider(input);
  let woken = false;
  setHandler(defineSignal(signalNames.providerChanged), () => {
    woken = true;
  });
  const watching = startWatching(input.provider);
  for (;;) {
    const startedMs = Date.now();
    woken = false;
    await checkRound(state);
    setCurrentDetails(providerDetails(state));
    const gone = isGone(state, Date.now());
    const published = await publish(state, gone ? null : shownTargets(state));
    if (gone && published) return watching.stop();
    const leftMs = startedMs + state.settings.intervalMs - Date.now();
    if (leftMs > 0) await condition(() => woken, leftMs);
    if (workflowInfo().continueAsNewSuggested) {
      await watching.stop();
      const { provider: name, settings, ...carried } = state;
      await continueAsNew<typeof provider>({ provider: name, settings, carried });
    }
  }
}

/** All nodes at once. A check tells the nodes of today's config, so new ones are checked in the same round. */
async function checkRound(state: ProviderState): Promise<void> {
  const checked = state.settings.nodes;
  await checkNodes(state, checked);
  const added = state.settings.nodes.filter((node) => !checked.includes(node));
  if (added.length > 0) await checkNodes(state, added);
}

async function checkNodes(state: ProviderState, nodes: string[]): Promise<void> {
  const outcomes = await Promise.all(nodes.map((node) => checkOne(state, node)));
  noteRound(state, outcomes, Date.now());
}

async function checkOne(
  { provider: name, settings }: ProviderState,
  node: string,
): Promise<NodeOutcome> {
  try {
    const call = {
      provider: name,
      requestBoundMs: 0,
      waitMs: settings.timeoutMs,
      summary: `check node ${node}`,
    };
    const result = await runStep('checkNode', { provider: name, node }, call);
    return { kind: 'checked', node, ...result };
  } catch (error) {
    const { message, facts } = readFailure(error);
    const { reason, remedy } = facts;
    const told = remedy === undefined || message.includes(remedy);
    return { kind: 'failed', node, reason, message: told ? message : `${message}; ${remedy}` };
  }
}

/** Whether it was written; if not, the next round tries again with fresher facts. */
async function publish(state: ProviderState, targets: TargetHealth[] | null): Promise<boolean> {
  const summary = targets === null ? 'remove ProviderHealth' : 'publish ProviderHealth';
  const call = { provider: '', requestBoundMs: 0, waitMs: 0, summary };
  try {
    await runStep('publishHealth', { provider: state.provider, targets }, call);
    return true;
  } catch (error) {
    const { message, facts } = readFailure(error);
    log.warn('ProviderHealth not written', { reason: facts.reason, error: message });
    return false;
  }
}
