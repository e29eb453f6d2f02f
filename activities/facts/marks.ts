/** The mark a VM of this Proxy carries. */
import type { StepDeps } from '../deps.ts';
import type { Mark } from '../vm/identity.ts';
import type { ProxyRef } from '../../workflows/contract/proxy.ts';
import type { Plan } from '../../workflows/contract/steps.ts';

/** `createdAt`: of the mark there is, `null` for a VM about to be made. */
export function markFor(deps: StepDeps, ref: ProxyRef, plan: Plan, createdAt: string | null): Mark {
  return {
    managed: 'true',
    uid: ref.uid,
    createdAt: createdAt ?? seconds(deps.clock.now()),
    installation: deps.installation.id,
    proxy: `${ref.namespace}/${ref.name}`,
    spec: plan.specHash,
    deletionPolicy: plan.deletionPolicy,
  };
}

/** ISO 8601 in whole seconds, as the specification's example. */
function seconds(epochMs: number): string {
  return new Date(epochMs).toISOString().replace(/\.\d+Z$/, 'Z');
}
