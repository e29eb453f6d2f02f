/** «Current details» of the Temporal UI: what a person needs to act, as Markdown. Pure. */
import { describeWithoutRemedy } from './conditions.ts';
import { plain } from './markdown.ts';
import type { ProxyState, Trouble } from './state.ts';
import { messageOf, phaseOf } from './status.ts';
import { timeOf } from './times.ts';
import { healthyOf, isVmGone, shownTrouble, shownVm } from './view.ts';
import { proxyWorkflowId } from './contract/messages.ts';

/** `nowMs` only dates the text: details are not part of history. `namespace` is Temporal's, for the commands. */
export function detailsOf(state: ProxyState, nowMs: number, namespace: string): string {
  const signal = `temporal workflow signal --namespace ${namespace} -w ${proxyWorkflowId(state.ref.uid)} --name`;
  const trouble = state.kubernetesTrouble ?? shownTrouble(state);
  const paragraphs = [
    `**${state.ref.namespace}/${state.ref.name}** — ${phaseOf(state)}${vmOf(state)}`,
    ...stepOf(state),
    ...(trouble ? troubleOf(trouble, nowMs, signal) : goingOn(state)),
    ...leftoversOf(state),
    ...(state.deleting ? [`**Give the VM up**: \`${signal} forceDelete\``] : []),
    ...timesOf(state),
  ];
  return paragraphs.join('\n\n');
}

/** The UI keeps much room between paragraphs, so what belongs together is one, in lines. */
const newLine = '  \n';

function vmOf(state: ProxyState): string {
  const vm = shownVm(state);
  if (!vm) return '';
  const { vmid, name, node, ip } = vm;
  if (isVmGone(state)) return `${newLine}VM \`${vmid}\` (\`${name}\`) is gone`;
  return `${newLine}VM \`${vmid}\` (\`${name}\`) on \`${node}\`, address ${ip ?? 'not known yet'}`;
}

function stepOf({ step, upid, stepSinceMs, stepUntilMs }: ProxyState): string[] {
  if (!step) return [];
  const since = stepSinceMs === null ? '' : ` since ${timeOf(stepSinceMs)}`;
  const until = stepUntilMs === null ? '' : `; looked at afresh at ${timeOf(stepUntilMs)}`;
  const task = upid ? `${newLine}Task: \`${upid}\`` : '';
  return [`**Step under way**: \`${step}\`${since}${until}${task}`];
}

function troubleOf(trouble: Trouble, nowMs: number, signal: string): string[] {
  const { reason, remedy, nextAtMs, step } = trouble;
  const waits = `**Waits: ${reason}** — ${plain(describeWithoutRemedy(trouble))}`;
  const helps = remedy ? `${newLine}**Remedy**: ${plain(remedy)}` : '';
  const next = nextAtMs !== null && nextAtMs > nowMs ? [`Next attempt: ${timeOf(nextAtMs)}`] : [];
  const more = `More: docs/errors.md, «${reason}»; docs/operations.md, «${step}»`;
  return [`${waits}${helps}`, [...next, more].join(newLine), `**Try now**: \`${signal} retry\``];
}

function goingOn(state: ProxyState): string[] {
  const message = messageOf(state);
  if (message !== '') return [plain(message)];
  return healthyOf(state) ? ['A request went through the proxy.'] : [];
}

function leftoversOf({ leftovers }: ProxyState): string[] {
  return leftovers.map(
    ({ vmid, node, reason }) => `**Left behind**: VM \`${vmid}\` on \`${node}\`: ${plain(reason)}`,
  );
}

/** Seconds of each step of the line so far. */
function timesOf({ lineTimings }: ProxyState): string[] {
  const steps = Object.entries(lineTimings).map(([name, seconds]) => `\`${name}\` ${seconds}`);
  return steps.length === 0 ? [] : [`Seconds: ${steps.join(' · ')}`];
}
