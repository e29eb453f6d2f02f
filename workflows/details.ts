/** «Current details» of the Temporal UI: what a person needs to act, as Markdown. Pure. */
import { describe } from './conditions.ts';
import type { ProxyState } from './state.ts';
import { messageOf, phaseOf } from './status.ts';
import { shownTrouble, shownVm } from './view.ts';
import { proxyWorkflowId } from './contract/messages.ts';

/** `nowMs` only dates the text: details are not part of history. `namespace` is Temporal's, for the commands. */
export function detailsOf(state: ProxyState, nowMs: number, namespace: string): string {
  const signal = `temporal workflow signal --namespace ${namespace} -w ${proxyWorkflowId(state.ref.uid)} --name`;
  const vm = shownVm(state);
  const trouble = state.kubernetesTrouble ?? shownTrouble(state);
  const lines = [`**${state.ref.namespace}/${state.ref.name}** — ${phaseOf(state)}`];
  if (vm)
    lines.push(
      `VM \`${vm.vmid}\` (\`${vm.name}\`) on \`${vm.node}\`, address ${vm.ip ?? 'not known yet'}`,
    );
  if (state.step)
    lines.push(`Step under way: \`${state.step}\`${state.upid ? `, task \`${state.upid}\`` : ''}`);
  if (trouble) {
    lines.push(`Waits: ${describe(trouble)}`);
    if (trouble.nextAtMs !== null && trouble.nextAtMs > nowMs) {
      lines.push(`Next attempt: ${new Date(trouble.nextAtMs).toISOString()}`);
    }
    lines.push(`Try now: \`${signal} retry\``);
  } else if (messageOf(state) !== '') lines.push(messageOf(state));
  if (state.deleting) lines.push(`Give the VM up: \`${signal} forceDelete\``);
  const steps = Object.entries(state.lineTimings);
  if (steps.length > 0) {
    lines.push(
      '',
      '| step | seconds |',
      '|---|---|',
      ...steps.map(([name, seconds]) => `| ${name} | ${seconds} |`),
    );
  }
  return lines.join('\n\n').replace(/\n\n\|/g, '\n|');
}
