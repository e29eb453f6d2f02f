/**
 * `npm run bench:idle [-- --sizes=1,100,1000 --rounds=5]`: what Proxies cost to which nothing happens, in requests to
 * Proxmox VE, memory and history, on a whole private stack (docs/testing.md, Benchmarks).
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { wholeNumber, wholeNumbers } from '../../deploy/dev/commandLine.ts';
import { printLine, runProgram } from '../../deploy/dev/program.ts';
import { bundleWorkflows } from '../../worker/bundle.ts';
import { collectScheduleId } from '../../workflows/contract/messages.ts';
import { withSettings } from '../system/support/config.ts';
import { collectionRound } from '../system/support/rounds.ts';
import { startStack, type SystemStack } from '../system/support/stack.ts';
import { administrator } from './administrator.ts';
import { grow, residentMiB, untilStill, type Fleet } from './fleet.ts';
import {
  checkRounds,
  costOf,
  idleReport,
  timedRequestSchema,
  wholeRounds,
  type IdleCost,
  type Stretch,
  type TimedRequest,
} from './idleReport.ts';

/** While Proxies are made, Proxmox and guests take so much of their times; while they are watched, all of it. */
const makingScale = 0.02;
/** Of `--provider-check-interval`; twice as long before the bench gives up. */
const checkEveryMs = 60_000;

function risingNumbers(text: string): number[] {
  const sizes = wholeNumbers()(text);
  if (sizes.every((size, index) => size > (sizes[index - 1] ?? 0))) return sizes;
  throw new InvalidArgumentError('They must rise.');
}

const command = new Command('npm run bench:idle --')
  .description('What Proxies cost to which nothing happens: requests, memory, history.')
  .option(
    '--sizes <n,…>',
    'so many Proxies, one size after the other',
    risingNumbers,
    [1, 100, 1_000],
  )
  .option('--rounds <n>', 'health checks of the provider at each size', wholeNumber(), 5);

runProgram(command, async () => {
  const { sizes, rounds } = command.opts<{ sizes: number[]; rounds: number }>();
  printLine('Starting a stack of its own …');
  const folder = mkdtempSync(join(tmpdir(), 'bench-idle-'));
  try {
    const bundle = join(folder, 'workflows.js');
    writeFileSync(bundle, (await bundleWorkflows()).code);
    await measure(sizes, rounds, bundle);
  } finally {
    rmSync(folder, { recursive: true });
  }
  return 0;
});

/** `bundle`: workflows as an image has them, or the worker's memory would be mostly the bundler's. */
async function measure(sizes: readonly number[], rounds: number, bundle: string): Promise<void> {
  const stack = await startStack({
    timeScale: makingScale,
    temporalDb: 'memory',
    workerFlags: [`--workflow-bundle=${bundle}`],
    providersConfig: withSettings({ maxClones: 100 }),
  });
  const fleet = { stack, kubernetes: administrator(stack) };
  try {
    const loadBefore = loadavg()[0] ?? 0;
    const costs: IdleCost[] = [];
    for (const size of sizes) costs.push(await costAt(fleet, size, rounds));
    const circumstances = { rounds, cpus: cpus().length, loadBefore, loadAfter: loadavg()[0] ?? 0 };
    for (const line of ['', ...idleReport(costs, circumstances)]) printLine(line);
  } finally {
    await fleet.kubernetes.close();
    await stack.stop();
  }
}

/** Grows the fleet to `size`, starts the operator anew, and measures once nothing moves. */
async function costAt(fleet: Fleet, size: number, rounds: number): Promise<IdleCost> {
  const { stack } = fleet;
  const startedAt = Date.now();
  await timeScale(stack, makingScale);
  await grow(fleet, size);
  await untilStill(fleet);
  printLine(`${size} Proxies are Ready, after ${seconds(startedAt)}; the operator starts anew …`);
  const made = memoryOf(stack);
  await timeScale(stack, 1);
  for (const name of ['worker', 'controller'] as const) {
    await stack.shutDown(name);
    await stack.start(name);
  }
  const eventsBefore = await untilStill(fleet);
  printLine(`Nothing moves; counting over ${rounds} rounds of checks …`);
  const stretch = await watched(stack, rounds);
  const eventsAdded = (await untilStill(fleet)) - eventsBefore;
  const restarted = memoryOf(stack);
  const memory = {
    worker: { made: made.worker, restarted: restarted.worker },
    controller: { made: made.controller, restarted: restarted.controller },
  };
  const cost = costOf(stretch, { size, eventsAdded, memory });
  if (cost.watchRounds < 1) throw new Error('the watch of the provider has not listed any VM');
  printLine(`${cost.otherRequests} requests and ${cost.recheckRequests} of agent re-checks`);
  return cost;
}

/**
 * So many rounds of checks, with one round of the collection in them; the Schedule itself is paused, so that it is one at
 * each size.
 */
async function watched(stack: SystemStack, rounds: number): Promise<Stretch> {
  await stack.temporal.schedule.getHandle(collectScheduleId('proxmox-local')).pause('benchmark');
  await stack.simulator.admin('DELETE', '/requests');
  const oneRoundMs = 2 * checkEveryMs;
  await stack.eventually(async () => checkRounds(await requests(stack)).length > 0, oneRoundMs);
  await collectionRound(stack);
  let stretch: Stretch | null = null;
  await stack.eventually(async () => {
    stretch = wholeRounds(await requests(stack), rounds);
    return stretch !== null;
  }, rounds * oneRoundMs);
  if (stretch === null) throw new Error('the rounds of checks did not end');
  return stretch;
}

async function requests(stack: SystemStack): Promise<TimedRequest[]> {
  return z.array(timedRequestSchema).parse(await stack.simulator.admin('GET', '/requests'));
}

async function timeScale(stack: SystemStack, scale: number): Promise<void> {
  await stack.simulator.admin('POST', '/time-scale', { scale });
}

function memoryOf(stack: SystemStack): Record<'worker' | 'controller', number> {
  return { worker: residentMiB(stack, 'worker'), controller: residentMiB(stack, 'controller') };
}

function seconds(sinceMs: number): string {
  return `${Math.round((Date.now() - sinceMs) / 1_000)} s`;
}
