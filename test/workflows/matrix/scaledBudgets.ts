/** The operator's table of times (workflows/contract/budgets.ts) for a world that runs some fifty times faster. */
import type * as budgets from '../../../workflows/contract/budgets.ts';

type Table = typeof budgets;
/** The same names and shapes with other numbers. */
type Scaled<T> = T extends number
  ? number
  : T extends (...args: never[]) => unknown
    ? T
    : { readonly [Key in keyof T]: number };

const waits: Scaled<Table['waitBudgets']> = {
  clone: 6_000,
  lock: 6_000,
  upload: 4_000,
  resize: 4_000,
  start: 4_000,
  stop: 4_000,
  destroy: 4_000,
  seedDelete: 4_000,
  running: 4_000,
  agent: 8_000,
};

export const waitBudgets = waits;
export const connectTimeoutMs = 2_000;
export const tlsHandshakeTimeoutMs = 2_000;
/** Bound of one request in the matrix; `requestTimeoutSeconds` of its provider says the same. */
export const defaultRequestBoundMs = 1_000;
export const kubernetesBoundMs = 1_000;
export const slackMs = 3_000;
/** Nobody is to run into it: what the matrix asks is not how busy this machine is. */
export const scheduleToStartMs = 30_000;
export const heartbeatSlackMs = 1_500;
export const waitHeartbeatMs = 2_000;
export const heartbeatEveryMs = 250;
export const temporalSilenceMs = 1_000;
export const readRetryMs = { first: 25, max: 1_000 };
export const probesHeartbeatMs = 2_000;
export const watchRoundMs = 200;
export const watchHeartbeatMs = 2_000;
export const agentRecheckMs = 10_000;
export const agentSilenceCheckMs = 1_000;
export const repeatMemoryMs = 10_000;
export const providerGoneMs = 10_000;
export const collectEveryMs = 10_000;
export const orphansUnservedMs = 10_000;
export const retryFirstMs = 25;
export const retryMaxMs = 1_000;
export const quickTries = 5;
export const askedRetryMaxMs = 250;
export const unknownOutcomeSlackMs = 300;
export const providerRetryMs = 500;
export const taskPoll = { minMs: 5, share: 0.05, maxMs: 50 };
export const runningPollMs = 25;
export const agentPollMs = 50;
export const haRoundMs = 25;
export const slotRetryMs = 50;
export const vmidCoolingMs = 3_000;
export const identityFreshMs = 1_000;
export const startAfterStopMs = 100;
export const replacementReadyMs = 20_000;

/** As the original. */
export function retryDelayMs(failures: number): number {
  return Math.min(retryMaxMs, retryFirstMs * 2 ** Math.min(failures - 1, 20));
}

/** As the original, in its own unit. */
export function repeatRetryMs(times: number): number {
  return times <= 1 ? 0 : Math.min(500, 50 * 2 ** Math.min(times - 2, 10));
}

/** The same. */
export function observedRetellMs(tellings: number): number {
  return Math.min(10_000, 1_000 * 2 ** Math.min(Math.max(0, tellings - 1), 10));
}

/** Fails to compile when a number of the original is missing here. */
({
  waitBudgets,
  connectTimeoutMs,
  tlsHandshakeTimeoutMs,
  defaultRequestBoundMs,
  kubernetesBoundMs,
  slackMs,
  scheduleToStartMs,
  heartbeatSlackMs,
  waitHeartbeatMs,
  heartbeatEveryMs,
  temporalSilenceMs,
  readRetryMs,
  probesHeartbeatMs,
  watchRoundMs,
  watchHeartbeatMs,
  agentRecheckMs,
  agentSilenceCheckMs,
  repeatMemoryMs,
  repeatRetryMs,
  observedRetellMs,
  providerGoneMs,
  collectEveryMs,
  orphansUnservedMs,
  retryFirstMs,
  retryMaxMs,
  quickTries,
  askedRetryMaxMs,
  unknownOutcomeSlackMs,
  providerRetryMs,
  taskPoll,
  runningPollMs,
  agentPollMs,
  haRoundMs,
  slotRetryMs,
  vmidCoolingMs,
  identityFreshMs,
  startAfterStopMs,
  replacementReadyMs,
  retryDelayMs,
}) satisfies { [Name in keyof Table]: Scaled<Table[Name]> };
