/** Conditions of a Proxy (kstatus: Ready, Reconciling, Stalled; ours: Provisioned, Healthy). Pure. */
import type { Condition, ConditionStatus, ConditionType } from './contract/proxy.ts';
import { making, removing } from './progress.ts';
import type { ProxyState, Trouble } from './state.ts';
import { timeOf } from './times.ts';
import { addressOf, healthyOf, isVmGone, shownHealth, shownTrouble, shownVm } from './view.ts';

/** What a tool may wait for is always there; the others while there is something to say. */
export function conditionsOf(state: ProxyState): Condition[] {
  return [
    readyCondition(state),
    provisionedCondition(state),
    healthyCondition(state),
    reconcilingCondition(state),
    stalledCondition(state),
    ...agentCondition(state),
    ...cloudInitCondition(state),
  ];
}

function condition(
  type: ConditionType,
  status: ConditionStatus,
  reason: string,
  message: string,
): Condition {
  return { type, status, reason, message };
}

function readyCondition(state: ProxyState): Condition {
  if (state.deleting) return condition('Ready', 'False', 'Deleting', 'the Proxy is being deleted');
  if (state.addressHeldBy !== null) {
    return condition('Ready', 'False', 'AddressConflict', messageOfConflict(state));
  }
  if (healthyOf(state)) {
    return condition('Ready', 'True', 'ProbeSucceeded', 'a request went through the proxy');
  }
  const trouble = shownTrouble(state);
  if (trouble && addressOf(state) === null) {
    return condition('Ready', 'False', trouble.reason, trouble.message);
  }
  if (addressOf(state) === null) {
    return condition('Ready', 'False', 'Provisioning', 'the VM has no address yet');
  }
  // It does not run, so nobody waits for a probe.
  const { repairTrouble } = state;
  if (repairTrouble)
    return condition('Ready', 'False', repairTrouble.reason, describe(repairTrouble));
  const health = shownHealth(state);
  return condition(
    'Ready',
    'False',
    health?.reason ?? 'AwaitingProbe',
    health?.message ?? 'waiting for the first probe',
  );
}

function provisionedCondition(state: ProxyState): Condition {
  if (isVmGone(state)) return condition('Provisioned', 'False', 'Deleting', 'the VM is gone');
  if (addressOf(state) !== null) {
    const moved = messageOfMove(state);
    if (moved !== null) return condition('Provisioned', 'True', 'PlacementDiffers', moved);
    return condition('Provisioned', 'True', 'AddressKnown', `the address is ${addressOf(state)}`);
  }
  const trouble = shownTrouble(state);
  if (state.deleting && !trouble) {
    return condition('Provisioned', 'False', 'Deleting', 'the VM is being removed');
  }
  return trouble
    ? condition('Provisioned', 'False', trouble.reason, describe(trouble))
    : condition('Provisioned', 'False', 'Provisioning', 'the VM is being made');
}

/** A VM somebody moved off the node in its spec is left there: that is told, and nobody fights over it (cases.md 11 d). */
function messageOfMove(state: ProxyState): string | null {
  const vm = shownVm(state);
  const zone = state.desired?.placement.zone ?? null;
  if (vm === null || zone === null || vm.specHash !== state.desired?.specHash) return null;
  if (vm.node === zone) return null;
  return `the address is ${addressOf(state)}; the VM is on ${vm.node}, and placement.zone names ${zone}, where the next one is made`;
}

/** Who has the address that this Proxy's VM reports, or reported last. */
export function messageOfConflict(state: ProxyState): string {
  return `the address ${addressOf(state)} is that of Proxy ${state.addressHeldBy}`;
}

/** Shown once somebody asked; a Proxy without an agent serves on with its last address (design §7). */
function agentCondition(state: ProxyState): Condition[] {
  const agent = state.deleting ? null : (shownVm(state)?.agent ?? null);
  if (!agent) return [];
  if (agent.reachable) {
    const message = 'the guest agent told the address when it was last asked';
    return [condition('AgentReachable', 'True', 'AgentAnswered', message)];
  }
  return [condition('AgentReachable', 'False', agent.reason, agent.message)];
}

/** Shown while the Secret is missing only: that is never a change (design §4). */
function cloudInitCondition({ deleting, desired }: ProxyState): Condition[] {
  const problem = desired?.cloudInitProblem ?? null;
  if (deleting || problem === null) return [];
  return [condition('CloudInitAvailable', 'False', 'CloudInitUnavailable', problem)];
}

function healthyCondition(state: ProxyState): Condition {
  if (state.deleting) return condition('Healthy', 'Unknown', 'Deleting', 'not probed any more');
  const health = shownHealth(state);
  if (!health) return condition('Healthy', 'Unknown', 'AwaitingProbe', 'not probed yet');
  return condition('Healthy', health.healthy ? 'True' : 'False', health.reason, health.message);
}

function reconcilingCondition(state: ProxyState): Condition {
  const trouble = shownTrouble(state);
  if (state.deleting) {
    if (state.desired?.paused) {
      return condition('Reconciling', 'True', 'DeletionPaused', messageOfPause(state));
    }
    return trouble
      ? condition('Reconciling', 'True', trouble.reason, describe(trouble))
      : condition('Reconciling', 'True', 'Deleting', removing(state.removals[0]));
  }
  if (state.desired?.paused) {
    return condition('Reconciling', 'False', 'Paused', messageOfPause(state));
  }
  if (isStalled(state))
    return condition('Reconciling', 'False', 'Stalled', 'see the condition Stalled');
  if (trouble) return condition('Reconciling', 'True', trouble.reason, describe(trouble));
  if (state.next || (!state.serving && addressOf(state) === null)) {
    const first = addressOf(state) === null ? state.next : null;
    const message = first ? making(first) : 'a VM is being made';
    return condition('Reconciling', 'True', 'Provisioning', message);
  }
  if (isOutOfDate(state)) {
    const message = 'the VM that serves is of an earlier spec; one of this spec is to be made';
    return condition('Reconciling', 'True', 'Provisioning', message);
  }
  if (state.removals.length > 0) {
    return condition('Reconciling', 'True', 'Removing', 'an earlier VM is being removed');
  }
  return condition('Reconciling', 'False', 'Settled', 'what is wanted is what runs');
}

/** Another VM is wanted than the one that serves, though nothing is known to be made yet. */
export function isOutOfDate({ serving, desired }: ProxyState): boolean {
  const wanted = desired?.specHash ?? null;
  return serving !== null && wanted !== null && serving.specHash !== wanted;
}

function isStalled(state: ProxyState): boolean {
  return shownTrouble(state)?.errorClass === 'Permanent' || state.replacementLate;
}

function stalledCondition(state: ProxyState): Condition {
  const trouble = shownTrouble(state);
  if (trouble?.errorClass === 'Permanent') {
    // An old VM that cannot be removed does not make its replacement fail.
    const replacing = state.serving !== null && !state.deleting && trouble === state.trouble;
    const reason = replacing ? 'ReplacementFailed' : trouble.reason;
    return condition('Stalled', 'True', reason, describe(trouble));
  }
  if (state.replacementLate) {
    return condition(
      'Stalled',
      'True',
      'ReplacementFailed',
      'the new VM did not become Ready within 15 minutes; the old one serves on',
    );
  }
  return condition('Stalled', 'False', 'Progressing', 'nothing is in the way for good');
}

/** What a pause means for a Proxy as it stands. */
export function messageOfPause({ deleting }: ProxyState): string {
  return deleting
    ? 'the Proxy is paused; the deletion waits'
    : 'paused: nothing is changed on Proxmox';
}

/** Reason, since when, attempt and remedy: every wait explains itself (design §2). */
export function describe(trouble: Trouble): string {
  const what = describeWithoutRemedy(trouble);
  return trouble.remedy ? `${what}; ${trouble.remedy}` : what;
}

/** As `describe`, where the remedy stands beside it. */
export function describeWithoutRemedy(trouble: Trouble): string {
  const { message, step, attempt, sinceMs } = trouble;
  return `${message} (${step}, attempt ${attempt}, since ${timeOf(sinceMs)})`;
}

/** Message and remedy, without what differs from one time to the next: trouble that comes back is the same Event, counted. */
export function sentenceOf({ message, remedy }: Trouble): string {
  return remedy ? `${message}; ${remedy}` : message;
}
