/** How a change of Proxmox is made by a workflow: submit in one piece, then wait for its task. */
import { CancellationScope, CancelledFailure } from '@temporalio/workflow';
import { waitBudgets, type WaitKind } from './contract/budgets.ts';
import type { SubmitResult } from './contract/steps.ts';
import { StepFailed, type Life } from './life.ts';

/** A VM as far as a wait for one of its tasks names it. */
interface NamedVm {
  vmid: number;
  name: string;
}

/** A request that changes something is never cut in half: a cancelled scope ends after it, not in it. */
export async function write<T>(submit: () => Promise<T>): Promise<T> {
  const result = await CancellationScope.nonCancellable(submit);
  throwIfCancelled();
  return result;
}

function throwIfCancelled(): void {
  if (CancellationScope.current().consideredCancelled) {
    throw new CancelledFailure('the wanted state changed');
  }
}

/** Submits and waits for the task, if there is one. Throws StepFailed; the wait can be cancelled. */
export async function finished(
  life: Life,
  place: { provider: string; requestBoundMs: number },
  kind: WaitKind,
  vm: NamedVm,
  submit: () => Promise<SubmitResult>,
): Promise<void> {
  const { upid } = await write(submit);
  if (upid !== null) await awaitTask(life, place, kind, vm, upid);
}

/** Waits for one task. The UPID is a fact of history: a worker killed meanwhile resumes with it. */
export async function awaitTask(
  life: Life,
  place: { provider: string; requestBoundMs: number },
  kind: WaitKind,
  { vmid, name: vmName }: NamedVm,
  upid: string,
): Promise<void> {
  life.state.upid = upid;
  try {
    await life.step(
      'awaitTask',
      { provider: place.provider, upid, kind, vmid, vmName },
      {
        provider: place.provider,
        requestBoundMs: place.requestBoundMs,
        waitMs: waitBudgets[kind],
        summary: `wait for the ${kind} of VM ${vmid}`,
      },
    );
  } finally {
    life.state.upid = null;
  }
}

/** A failed wait after which the task does nothing any more. Out of time, or not to be asked about, is no end. */
export function isTaskEnd(error: unknown): error is StepFailed {
  if (!(error instanceof StepFailed)) return false;
  const { taskEnded, reason } = error.failure.facts;
  return taskEnded === true || reason === 'TaskUnknown';
}
