import { readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';

/**
 * What is written down about a process we start, so that another program can end it later and end nothing else: a
 * process ID alone may by then belong to somebody else's process.
 */
const recordSchema = z.object({
  name: z.string(),
  pid: z.number().int().positive(),
  /** Clock ticks from boot to the start of the process (proc(5), field 22 of stat). */
  startTicks: z.string(),
  /** Ticks are counted from boot, so a record means nothing after the next one. */
  bootId: z.string(),
  commandLine: z.string(),
});
export type ProcessRecord = z.infer<typeof recordSchema>;

const killPollMs = 50;

/** Describes a running process of that ID; undefined when there is none. */
export function describeProcess(name: string, pid: number): ProcessRecord | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command's name, in parentheses, may itself hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state = '', startTicks = ''] = [fields[0], fields[19]];
    if (state === 'Z' || state === 'X') return undefined;
    const commandLine = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    return { name, pid, startTicks, bootId: bootId(), commandLine };
  } catch {
    return undefined;
  }
}

/** Whether the process a record describes still runs. */
export function stillRuns(record: ProcessRecord): boolean {
  const now = describeProcess(record.name, record.pid);
  return (
    now !== undefined &&
    now.startTicks === record.startTicks &&
    now.bootId === record.bootId &&
    now.commandLine === record.commandLine
  );
}

/** Writes a record to `<folder>/<name>.json`, at once and whole. */
export function writeRecord(folder: string, record: ProcessRecord): void {
  const file = join(folder, `${record.name}.json`);
  writeFileSync(`${file}.new`, JSON.stringify(record));
  renameSync(`${file}.new`, file);
}

/** No effect when there is none. */
export function removeRecord(folder: string, name: string): void {
  rmSync(join(folder, `${name}.json`), { force: true });
}

/** The records of a folder; none when the folder does not exist. Files that are no records are passed over. */
export function readRecords(folder: string): ProcessRecord[] {
  return fileNames(folder).flatMap((name) => {
    if (!name.endsWith('.json')) return [];
    const parsed = recordSchema.safeParse(parseJson(readFileSync(join(folder, name), 'utf8')));
    return parsed.success ? [parsed.data] : [];
  });
}

/**
 * Ends the process a record describes, if it still runs: SIGTERM, then SIGKILL after `graceMs`, to its whole group
 * (every process we start leads its own). Returns whether there was something to end.
 */
export async function endRecorded(record: ProcessRecord, graceMs: number): Promise<boolean> {
  if (!stillRuns(record)) return false;
  signalGroup(record.pid, 'SIGTERM');
  const deadline = Date.now() + graceMs;
  while (stillRuns(record) && Date.now() < deadline) await pause(killPollMs);
  if (!stillRuns(record)) return true;
  signalGroup(record.pid, 'SIGKILL');
  while (stillRuns(record)) await pause(killPollMs);
  return true;
}

/** Sends a signal to a process group; one that is gone is no error. */
export function signalGroup(leaderPid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-leaderPid, signal);
  } catch {
    // Gone in the meantime.
  }
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}

function fileNames(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
