/**
 * Time in milliseconds: budgets of waits, bounds of requests, pauses before retries (specification, Timeouts), and every other
 * number of time that more than one file or the tests need. What one file alone needs stands there.
 */

const second = 1_000;
const minute = 60 * second;

/** How long one wait may take, counted from the first scheduling of the wait. */
export const waitBudgets = {
  clone: 10 * minute,
  lock: 10 * minute,
  upload: 2 * minute,
  resize: 2 * minute,
  start: 2 * minute,
  stop: 2 * minute,
  destroy: 5 * minute,
  seedDelete: 1 * minute,
  running: 60 * second,
  agent: 10 * minute,
} as const;
export type WaitKind = keyof typeof waitBudgets;

/** Bounds of one connection (specification, Timeouts). */
export const connectTimeoutMs = 10 * second;
export const tlsHandshakeTimeoutMs = 10 * second;

/** Bound of one API request where no plan tells the provider's own (specification, Config reference). */
export const defaultRequestBoundMs = 30 * second;
/** Bound of one request to Kubernetes. */
export const kubernetesBoundMs = 10 * second;
/** A step may be this much late in finishing before Temporal gives its attempt up. */
export const slackMs = 30 * second;
/** Provider steps that no worker picks up within this time become Transient `ProviderNotServed`. */
export const scheduleToStartMs = 1 * minute;
/**
 * Silence of a short step: the request bound plus this. Of one that writes: `temporalSilenceMs` more, so that a write
 * that left at the last moment is over before Temporal lets another attempt look. An upload's bound is a second longer
 * for each MiB, which this covers.
 */
export const heartbeatSlackMs = 15 * second;
/** Silence of a wait, after which another worker takes it over. */
export const waitHeartbeatMs = 15 * second;

/** How often a step says that it lives, well below every silence above. */
export const heartbeatEveryMs = 4 * second;
/** A write does not leave when Temporal has answered nothing for this long: another attempt may be at work. */
export const temporalSilenceMs = 20 * second;
/** Retry by Temporal itself of reads that said «not yet» or lost their worker: first pause and longest one. */
export const readRetryMs = { first: 1 * second, max: 1 * minute } as const;

/** Silence of the prober, after which another worker takes over. */
export const probesHeartbeatMs = 30 * second;

/** A provider that no worker has served for this long has left: its workflow and its ProviderHealth end. */
export const providerGoneMs = 10 * minute;

/** How often the VMs of a provider are listed, and compared with the statuses. */
export const watchRoundMs = 10 * second;
/** Silence of that watch, after which another worker takes over. */
export const watchHeartbeatMs = 30 * second;
/** How often the agent of a VM that runs is asked, and its Secret hashed (design §7). */
export const agentRecheckMs = 10 * minute;
/** The same while an agent that used to answer is silent. */
export const agentSilenceCheckMs = 1 * minute;
/** VMs that vanish or stop again within this time are made or started again ever more slowly. */
export const repeatMemoryMs = 60 * minute;

/** Pause after the n-th time within `repeatMemoryMs` that VMs of one Proxy vanished, or stopped: 0, 1, 2, 4 … 30 min. */
export function repeatRetryMs(times: number): number {
  return times <= 1 ? 0 : Math.min(30 * minute, minute * 2 ** Math.min(times - 2, 10));
}

/** A difference the status still shows is told again this much after the n-th telling: 5, 10 … 60 min. */
export function observedRetellMs(tellings: number): number {
  return Math.min(60 * minute, 5 * minute * 2 ** Math.min(Math.max(0, tellings - 1), 10));
}

/** Time between two rounds of the collection of orphans; what nobody serves any more is not looked for after the other. */
export const collectEveryMs = 5 * minute;
export const orphansUnservedMs = 10 * minute;

/** Retry of Transient failures by the workflow: 1, 2, 4 s … 5 min. */
export const retryFirstMs = 1 * second;
export const retryMaxMs = 5 * minute;
/** After a clone without an answer a VMID counts as vacant the request bound plus this later (design §5). */
export const unknownOutcomeSlackMs = 15 * second;
/** Permanent failures of a provider are tried again this often, or on `providerChanged`. */
export const providerRetryMs = 10 * minute;

/** Task polling: max(minimum, share of the elapsed time), at most the cap (design §5). */
export const taskPoll = { minMs: 100, share: 0.05, maxMs: 1 * second } as const;
/** Power-state polling after a start. */
export const runningPollMs = 1 * second;
/** Agent polling while a VM boots; one at a time per node (design §7). */
export const agentPollMs = 5 * second;
/** The HA manager acts on a request within a few of these. */
export const haRoundMs = 2 * second;
/** A full house of clones or destroys is asked again this much later. */
export const slotRetryMs = 2 * second;
/** A freed VMID is not handed out again before this has passed. */
export const vmidCoolingMs = 10 * minute;
/** A destructive request must follow the identity read within this time. */
export const identityFreshMs = 5 * second;
/** A start waits this long after a stop (captured fact 31). */
export const startAfterStopMs = 5 * second;
/** A replacement that is not Ready this long after its start is reported as failed. */
export const replacementReadyMs = 15 * minute;

/** So many tries keep the delay that a failure asks for; then it grows, at most to this. */
export const quickTries = 5;
export const askedRetryMaxMs = 30 * second;

/** Delay before the n-th retry (n counts from 1) of a Transient failure. */
export function retryDelayMs(failures: number): number {
  return Math.min(retryMaxMs, retryFirstMs * 2 ** Math.min(failures - 1, 20));
}
