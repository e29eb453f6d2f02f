/** «Current details» of the Temporal UI: what a person needs to act, as Markdown. Pure. */
import { describeWithoutRemedy, timeOf } from './conditions.ts';
import { plain } from './markdown.ts';
import type { ProxyState, Trouble } from './state.ts';
import { messageOf, phaseOf } from './status.ts';
import { healthyOf, shownTrouble, shownVm } from './view.ts';
import { proxyWorkflowId } from './contract/messages.ts';

/** `nowMs` only dates the text: details are not part of history. `namespace` is Temporal's, for the commands. */
export function detailsOf(state: ProxyState, nowMs: number, namespace: string): string {
  const signal = `temporal workflow signal --namespace ${namespace} -w ${proxyWorkflowId(state.ref.uid)} --name`;
  const trouble = state.kubernetesTrouble ?? shownTrouble(state);
  const paragraphs = [
    `**${state.ref.namespace}/${state.ref.name}** — ${phaseOf(state)}`,
    ...vmOf(state),
    ...stepOf(state),
    ...(trouble ? troubleOf(trouble, nowMs, signal) : goingOn(state)),
    ...leftoversOf(state),
    ...(state.deleting ? [`Give the VM up: \`${signal} forceDelete\``] : []),
  ];
  const table = timesOf(state);
  return [...paragraphs, ...(table === '' ? [] : [table])].join('\n\n');
}

function vmOf(state: ProxyState): string[] {
  const vm = shownVm(state);
  if (!vm) return [];
  const { vmid, name, node, ip } = vm;
  return [`VM \`${vmid}\` (\`${name}\`) on \`${node}\`, address ${ip ?? 'not known yet'}`];
}

function stepOf({ step, upid, stepSinceMs, stepUntilMs }: ProxyState): string[] {
  if (!step) return [];
  const since = stepSinceMs === null ? '' : `, since ${timeOf(stepSinceMs)}`;
  const task = upid ? `, task \`${upid}\`` : '';
  const until =
    stepUntilMs === null ? '' : `, until ${timeOf(stepUntilMs)}: then it is looked at afresh`;
  return [`Step under way: \`${step}\`${task}${since}${until}`];
}

function troubleOf(trouble: Trouble, nowMs: number, signal: string): string[] {
  const { reason, remedy, nextAtMs, step } = trouble;
  const next = nextAtMs !== null && nextAtMs > nowMs ? [`Next attempt: ${timeOf(nextAtMs)}`] : [];
  const help = `docs/errors.md, «${reason}»; docs/operations.md, «${step}»`;
  return [
    `**Waits: ${reason}** — ${plain(describeWithoutRemedy(trouble))}`,
    ...(remedy ? [`**Remedy**: ${plain(remedy)}`] : []),
    ...next,
    `Try now: \`${signal} retry\``,
    `More: ${help}`,
  ];
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

/** Seconds of each step of the line, with the one under way at its end. */
function timesOf({ lineTimings, step, stepSinceMs }: ProxyState): string {
  const rows = Object.entries(lineTimings).map(([name, seconds]) => `| ${name} | ${seconds} |`);
  if (rows.length === 0) return '';
  const running =
    step && stepSinceMs !== null ? [`| ${step} | since ${timeOf(stepSinceMs)} |`] : [];
  return ['| step | seconds |', '|---|---|', ...rows, ...running].join('\n');
}
