/** The wait for a VM's lock: many attempts of many steps, one budget (specification, Timeouts). */
import { z } from 'zod';
import { waitBudgets } from '../workflows/contract/budgets.ts';
import { ProviderError, transient } from './providerError.ts';

const awaitedSchema = z.looseObject({
  awaitedLocks: z.array(z.object({ vmid: z.number(), budgetFromMs: z.number() })),
});

/**
 * The error of a step; Transient `BudgetExceeded` instead of `WaitingForLock` when the workflow has waited for that
 * VM's lock longer than its budget. `scale` shortens the budget in tests.
 */
export function withinLockBudget(
  error: unknown,
  input: unknown,
  nowMs: number,
  scale: number,
): unknown {
  if (!(error instanceof ProviderError) || error.facts.reason !== 'WaitingForLock') return error;
  const { vmid, lock, node } = error.facts;
  const awaited = awaitedSchema.safeParse(input);
  if (!awaited.success || vmid === undefined || lock === undefined) return error;
  const known = awaited.data.awaitedLocks.find((candidate) => candidate.vmid === vmid);
  if (known === undefined || nowMs - known.budgetFromMs < waitBudgets.lock * scale) return error;
  const minutes = waitBudgets.lock / 60_000;
  const remedy = `when no task of VM ${vmid} runs any more${node === undefined ? '' : ` on ${node}`}: qm unlock ${vmid}`;
  return transient(
    'BudgetExceeded',
    `${error.message}, for over ${minutes} min; ${remedy}`,
    { ...error.facts, goBack: true, remedy },
    error,
  );
}
