/** Waits for the end of a Proxmox task. Changes nothing, so a lost attempt goes on with the same UPID. */
import type { Step, StepContext, StepDeps } from './deps.ts';
import { ProviderError, transient } from './providerError.ts';
import { classifyTaskExit } from './proxmox/classify.ts';
import { upidNode } from './proxmox/client.ts';
import type { ProxmoxApi, TaskStatus } from './proxmox/api.ts';
import { taskPoll, waitBudgets, type WaitKind } from '../workflows/contract/budgets.ts';
import type { AwaitTaskInput, AwaitTaskResult } from '../workflows/contract/steps.ts';

const purposes: Record<WaitKind, string> = {
  clone: 'clone to',
  lock: 'operation on',
  upload: 'upload of the seed of',
  resize: 'resize of',
  start: 'start of',
  stop: 'stop of',
  destroy: 'destroy of',
  seedDelete: 'delete of the seed of',
  running: 'start of',
  agent: 'start of',
};

/**
 * `OK` and `WARNINGS: n` are success (pve/README 34); any other end is thrown as classify.ts reads its text.
 * Throws Transient `BudgetExceeded` naming the UPID when the budget, counted from the first scheduling, runs out:
 * the task goes on, and the line finds its result by looking (goBack).
 */
export const awaitTask: Step<AwaitTaskInput, AwaitTaskResult> = async (deps, context, input) => {
  const { provider, upid } = input;
  const api = deps.providers.api(provider, context.call);
  for (;;) {
    context.call.signal.throwIfAborted();
    const task = await lookAtTask(deps, context, api, input);
    context.heartbeat({ upid });
    if (task?.status === 'stopped') return ended(context, task, input);
    if (task !== null) requireBudget(deps, context, input);
    const waitedMs = Math.max(0, deps.clock.now() - context.scheduledAtMs);
    const { taskMinMs, taskMaxMs } = deps.pace;
    const pauseMs = Math.min(taskMaxMs, Math.max(taskMinMs, waitedMs * taskPoll.share));
    await deps.clock.sleep(pauseMs, context.call.signal);
  }
};

/** A node that does not answer keeps its task's result; what ends this wait then is the budget. */
async function lookAtTask(
  deps: StepDeps,
  context: StepContext,
  api: ProxmoxApi,
  input: AwaitTaskInput,
): Promise<TaskStatus | null> {
  try {
    return await api.getTask(input.upid);
  } catch (error) {
    requireBudget(deps, context, input, error);
    throw error;
  }
}

function requireBudget(
  deps: StepDeps,
  context: StepContext,
  { provider, upid, kind, vmid }: AwaitTaskInput,
  cause?: unknown,
): void {
  const budgetMs = waitBudgets[kind] * deps.pace.budgetScale;
  if (deps.clock.now() - context.scheduledAtMs <= budgetMs) return;
  const minutes = waitBudgets[kind] / 60_000;
  const last = cause === undefined ? 'is still running' : 'cannot be asked about';
  throw transient(
    'BudgetExceeded',
    `${purposes[kind]} ${vmNamed(vmid)}: task ${upid} ${last} after ${minutes} min; it is left alone, its result is looked for`,
    { provider, upid, ...(vmid === null ? {} : { vmid }), goBack: true },
    cause,
  );
}

function ended(
  { log }: StepContext,
  task: TaskStatus,
  { provider, upid, kind, vmid }: AwaitTaskInput,
): AwaitTaskResult {
  const what = `${purposes[kind]} ${vmNamed(vmid)}`;
  const exit = task.exitstatus ?? 'unexpected status';
  const end = classifyTaskExit(exit, { provider, what, upid, ...(vmid === null ? {} : { vmid }) });
  const node = upidNode(upid);
  if (end.kind !== 'failed' && kind === 'destroy')
    log.debug({ node, destroyed: true }, 'proxmox vm deleted');
  if (end.kind === 'ok') return { warnings: 0 };
  if (end.kind === 'warnings') {
    log.debug({ node, upid, exitstatus: exit }, 'proxmox task finished with warnings');
    return { warnings: end.count };
  }
  const { error } = end;
  log.debug({ node, upid, exitstatus: exit }, 'proxmox task failed');
  // Nothing there to stop or destroy: what proves it is the next look, not this text.
  if (error.errorClass === 'NotFound' && (kind === 'stop' || kind === 'destroy')) {
    return { warnings: 0 };
  }
  // A failed clone takes its VMID's config along, so a new one starts with a fresh look for a VMID.
  const goBack = kind === 'clone' && error.errorClass !== 'Permanent';
  const facts = { ...error.facts, taskEnded: true, ...(goBack ? { goBack } : {}) };
  const errorClass = goBack ? 'Transient' : error.errorClass;
  throw new ProviderError(errorClass, error.message, facts, error.cause);
}

function vmNamed(vmid: number | null): string {
  return vmid === null ? 'a VM that is gone' : `VM ${vmid}`;
}
