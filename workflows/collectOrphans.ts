/**
 * One round of the collection of orphans of a provider, started by the Schedule `gc-<provider>`. A VM is removed by the
 * run of its owner (`proxy-<uid>`), so that nothing else happens to it meanwhile; a seed without a VM is deleted here.
 */
import { log, workflowInfo } from '@temporalio/workflow';
import { defaultRequestBoundMs, waitBudgets } from './contract/budgets.ts';
import type {
  Census,
  CollectionReport,
  ListSeedsResult,
  RememberedSeed,
} from './contract/collection.ts';
import type { CollectOrphansInput } from './contract/messages.ts';
import type { ProxyRef } from './contract/proxy.ts';
import { readFailure, type StepFailure } from './failures.ts';
import { collected, newsOf } from './orphanEvents.ts';
import {
  dueSeeds,
  judge,
  knownVmids,
  mayClear,
  problemOf,
  remembered,
  unservedOf,
  type Judgement,
} from './orphanRound.ts';
import { runStep, type StepCall } from './steps.ts';

interface Found {
  /** Or why they could not be listed, which holds up no VM: a storage to be mended, a missing right. */
  seeds: ListSeedsResult | StepFailure;
  census: Census;
}

/** The result is what the round saw and did; the next round gets it as the last completion result of its Schedule. */
export async function collectOrphans({ provider }: CollectOrphansInput): Promise<CollectionReport> {
  const before = remembered(workflowInfo().lastResult, provider, Date.now());
  const found = await look(before).catch(readFailure);
  if (!('census' in found)) return await giveUp(before, found);
  const judged = judge(before, found, Date.now());
  const done = [
    ...(await handOver(judged)),
    ...(await deleteSeeds(judged, found.census)),
    ...(await settleLeftovers(judged, found.census)),
  ];
  await publish(judged.report, [...newsOf(before, judged.report), ...collected(done)], false);
  return judged.report;
}

/** Seeds first, then VMs, each with Kubernetes last: what is made meanwhile has its Proxy in the later list. */
async function look(before: CollectionReport): Promise<Found> {
  const { provider } = before;
  const call = callOf(provider, defaultRequestBoundMs);
  const due = dueSeeds(before, Date.now());
  const seeds = await runStep(
    'listSeeds',
    { provider, due, knownVmids: knownVmids(before) },
    { ...call, summary: `list the seeds of ${provider}` },
  ).catch(permanentFailure);
  const { census } = await runStep(
    'listManagedVms',
    { ref: null, provider },
    { ...call, summary: `list the VMs of ours on ${provider}` },
  );
  if (census === null) throw new Error('listManagedVms without a Proxy answered without a census');
  return { seeds, census };
}

/** A failure that trying again cannot mend; throws any other. */
function permanentFailure(error: unknown): StepFailure {
  const failure = readFailure(error);
  if (failure.errorClass !== 'Permanent') throw error;
  return failure;
}

/** Nothing was learnt, so nothing is forgotten either. */
async function giveUp(before: CollectionReport, failure: StepFailure): Promise<CollectionReport> {
  const { reason } = failure.facts;
  const { unservedSinceMs, ended } = unservedOf(before, reason, Date.now());
  log.warn('orphans not looked for', { provider: before.provider, reason });
  const report = { ...before, problem: problemOf(failure), unservedSinceMs };
  await publish(report, [], ended);
  return report;
}

/** Told again in every round until it is gone: a signal may meet a run that just ends. */
async function handOver({ vms, report }: Judgement): Promise<string[]> {
  const { provider } = report;
  const done: string[] = [];
  for (const vm of vms) {
    const { vmid, owner, name } = vm;
    const told = await attempt(() => signal(provider, vmid, owner), vm);
    if (told) done.push(`VM ${vmid} (${name}) is given to workflow proxy-${owner.uid}`);
  }
  return done;
}

async function settleLeftovers({ report }: Judgement, census: Census): Promise<string[]> {
  const { provider } = report;
  const done: string[] = [];
  for (const { vmid, owner, state } of census.leftovers) {
    if (state === 'free' && !mayClear(report, census)) continue;
    const told = await attempt(() => signal(provider, vmid, owner), { outlook: '' });
    if (told) done.push(`leftover VM ${vmid} of ${owner.namespace}/${owner.name} is ${state}`);
  }
  return done;
}

async function signal(provider: string, vmid: number, owner: ProxyRef): Promise<void> {
  const summary = `tell proxy-${owner.uid} about VM ${vmid}`;
  await runStep('signalOrphan', { provider, vmid, owner }, { ...callOf('', 0), summary });
}

/** One after the other; a seed that cannot be deleted holds up no other. */
async function deleteSeeds({ seeds, report }: Judgement, census: Census): Promise<string[]> {
  const done: string[] = [];
  for (const seed of seeds) {
    const gone = await attempt(() => deleteSeed(report.provider, seed, census), seed);
    if (gone) done.push(`seed ${seed.file} on ${seed.node} is deleted`);
  }
  return done;
}

async function deleteSeed(
  provider: string,
  { vmName, file: seedFile, node, storage: isoStorage }: RememberedSeed,
  { settings }: Census,
): Promise<void> {
  const result = await runStep(
    'deleteSeed',
    { ref: null, provider, vmName, seedFile, node, vmid: null, isoStorage, orphan: true },
    { ...callOf(provider, settings.requestBoundMs), summary: `delete ${seedFile} on ${node}` },
  );
  if (result.kind === 'gone') return;
  await runStep(
    'awaitTask',
    { provider, upid: result.upid, kind: 'seedDelete', vmid: null },
    {
      ...callOf(provider, settings.requestBoundMs),
      waitMs: waitBudgets.seedDelete,
      summary: `wait for the delete of ${seedFile}`,
    },
  );
}

/** `false` when it failed; the next round finds it again, and the report says why. */
async function attempt(work: () => Promise<void>, subject: { outlook: string }): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    const { message, facts } = readFailure(error);
    subject.outlook = `could not be removed (${facts.reason}): ${message}`;
    return false;
  }
}

/** A report that could not be shown is still the result of the run. */
async function publish(
  report: CollectionReport,
  events: ReturnType<typeof newsOf>,
  ended: boolean,
): Promise<void> {
  const { provider, vms, seeds, leftovers, alarm, problem, mode } = report;
  const counts = { vms: vms.length, seeds: seeds.length, leftovers: leftovers.length };
  try {
    await runStep(
      'publishOrphans',
      { provider, ...counts, alarm, blind: mode === null, problem, events, ended },
      { ...callOf('', 0), summary: `show the orphans of ${provider}` },
    );
  } catch (error) {
    log.warn('orphans not shown', { provider, reason: readFailure(error).facts.reason });
  }
}

function callOf(provider: string, requestBoundMs: number): Omit<StepCall, 'summary'> {
  return { provider, requestBoundMs, waitMs: 0 };
}
