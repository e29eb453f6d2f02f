import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { lockHolder, tryLock } from './lock.ts';
import type { Lock } from './lock.ts';
import { describeProcess, endRecorded, readRecords, removeRecord, stillRuns, writeRecord } from './processRecord.ts'; // prettier-ignore
import { UserError } from './program.ts';

/** Root of the checkout. */
export const checkout = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

/** The order in which the processes of a stack end: whoever asks before whoever answers. */
export const stopOrder = [
  'controller',
  'worker',
  'simulator',
  'temporal',
  'kube-apiserver',
  'etcd',
] as const;
export type ProcessName = (typeof stopOrder)[number];

/** Everything of one stack stands in `.local/<name>` of its checkout. */
export interface StackFolder {
  name: string;
  path: string;
  logs: string;
  pids: string;
  addressesFile: string;
}

/** The process that runs the stack, among the records. */
const supervisor = 'supervisor';
const leftoverGraceMs = 5_000;
/** The supervisor itself waits for its processes one after the other. */
const supervisorGraceMs = 90_000;

/** Where the stack of that name stands; nothing is created. */
export function stackFolder(name: string): StackFolder {
  const path = join(checkout, '.local', name);
  return {
    name,
    path,
    logs: join(path, 'logs'),
    pids: join(path, 'pids'),
    addressesFile: join(path, 'addresses.txt'),
  };
}

/** Names of the stacks that have a folder in this checkout; people may keep something else of theirs beside them. */
export function stackNames(): string[] {
  try {
    return readdirSync(join(checkout, '.local'), { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && existsSync(stackFolder(entry.name).pids))
      .map((entry) => entry.name)
      .sort();
  } catch {
    return [];
  }
}

/**
 * Makes the stack's folder ours, empty, and ends what a crashed run left. Throws UserError when the stack runs.
 */
export async function takeStackFolder(folder: StackFolder): Promise<Lock> {
  const lock = await tryLock(lockName(folder), `running the stack ${folder.name}`);
  if (lock === undefined) {
    throw new UserError(
      `The stack in ${folder.path} runs already: end it with make down, or with Ctrl-C where it was started.`,
    );
  }
  await endLeftovers(folder);
  rmSync(folder.path, { recursive: true, force: true });
  mkdirSync(folder.logs, { recursive: true, mode: 0o700 });
  mkdirSync(folder.pids, { recursive: true, mode: 0o700 });
  const us = describeProcess(supervisor, process.pid);
  if (us !== undefined) writeRecord(folder.pids, us);
  return lock;
}

/** After a stop: only the logs stay, for whoever asks what happened. */
export function leaveStackFolder(folder: StackFolder, lock: Lock): void {
  removeAllButLogs(folder);
  lock.release();
}

/** Whether a stack of that folder runs, started by whichever process. */
export async function isRunning(folder: StackFolder): Promise<boolean> {
  return (await lockHolder(lockName(folder))) !== undefined;
}

/**
 * Ends a running stack by asking the process that runs it, and whatever a crash left of one. Only processes whose
 * record fits are signalled. Returns the names of what was ended.
 */
export async function endStack(folder: StackFolder): Promise<string[]> {
  const running = readRecords(folder.pids).find(({ name }) => name === supervisor);
  const asked = running !== undefined && stillRuns(running);
  if (asked) {
    process.kill(running.pid, 'SIGTERM');
    const deadline = Date.now() + supervisorGraceMs;
    while ((await isRunning(folder)) && Date.now() < deadline) await pause(100);
    if (stillRuns(running) && (await isRunning(folder))) process.kill(running.pid, 'SIGKILL');
  }
  const left = await endLeftovers(folder);
  removeAllButLogs(folder);
  return asked ? [`process ${running.pid}, which ran the stack`, ...left] : left;
}

/** Ends the processes recorded in the folder that still run, in stop order. Returns their names. */
async function endLeftovers(folder: StackFolder): Promise<string[]> {
  const records = readRecords(folder.pids);
  const ended: string[] = [];
  for (const name of stopOrder) {
    const record = records.find((candidate) => candidate.name === name);
    if (record === undefined) continue;
    if (await endRecorded(record, leftoverGraceMs)) ended.push(`${name} (${record.pid})`);
    removeRecord(folder.pids, name);
  }
  return ended;
}

/** Folders of system tests begin with this; their stacks end with the test, unless it was killed. */
export const testStackPrefix = 'test-';

/** Ends what killed test runs left behind, and removes it; a stack whose test still runs is left alone. */
export async function endCrashedTestStacks(): Promise<string[]> {
  const ended: string[] = [];
  for (const name of stackNames().filter((candidate) => candidate.startsWith(testStackPrefix))) {
    const folder = stackFolder(name);
    if (await isRunning(folder)) continue;
    ended.push(...(await endLeftovers(folder)));
    rmSync(folder.path, { recursive: true, force: true });
  }
  return ended;
}

/** For `readAddresses`: what the stack prints when it is up. */
export function writeAddresses(folder: StackFolder, lines: readonly string[]): void {
  writeFileSync(folder.addressesFile, `${lines.join('\n')}\n`);
}

/** What the running stack wrote, undefined while it is still starting. */
export function readAddresses(folder: StackFolder): string | undefined {
  try {
    return readFileSync(folder.addressesFile, 'utf8').trimEnd();
  } catch {
    return undefined;
  }
}

function removeAllButLogs(folder: StackFolder): void {
  for (const name of readdirSync(folder.path)) {
    if (name !== 'logs') rmSync(join(folder.path, name), { recursive: true, force: true });
  }
}

function lockName(folder: StackFolder): string {
  return `stack ${folder.path}`;
}
