/** Recorded histories: `testdata/histories/<release>/<what happens>.json`, as Temporal's own tools write them. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const historiesFolder = join(repository, 'testdata/histories');

export type RecordedEvent = Record<string, unknown>;
export interface RecordedHistory {
  events: RecordedEvent[];
}

export interface HistoryFile {
  release: string;
  name: string;
  history: RecordedHistory;
}

const historySchema = z.object({ events: z.array(z.record(z.string(), z.unknown())).min(1) });

/** The release that histories are recorded for now. */
export function currentRelease(): string {
  const text = readFileSync(join(repository, 'package.json'), 'utf8');
  return z.object({ version: z.string() }).parse(JSON.parse(text)).version;
}

/** Releases that have a folder. */
export function recordedReleases(folder = historiesFolder): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
}

/** All histories of a release. Throws when there is none: a release without histories proves nothing. */
export function historiesOf(release: string, folder = historiesFolder): HistoryFile[] {
  const path = join(folder, release);
  const files = readdirSync(path).filter((file) => file.endsWith('.json'));
  if (files.length === 0) {
    throw new Error(`${path} holds no history; record some with: npm run record:history`);
  }
  return files.sort().map((file) => ({
    release,
    name: basename(file, '.json'),
    history: parseHistory(readFileSync(join(path, file), 'utf8')),
  }));
}

export function parseHistory(text: string): RecordedHistory {
  return historySchema.parse(JSON.parse(text));
}

/** Writes one history, an event a line, so that a change of a story shows as a change of lines. Returns its bytes. */
export function writeHistory(release: string, name: string, history: RecordedHistory): number {
  mkdirSync(join(historiesFolder, release), { recursive: true });
  const lines = history.events.map((event) => JSON.stringify(withoutTraces(event)));
  const text = `{"events":[\n${lines.join(',\n')}\n]}\n`;
  writeFileSync(join(historiesFolder, release, `${name}.json`), text);
  return text.length;
}

/** Removes a release's histories of stories that are told no more. */
export function removeOthers(release: string, names: readonly string[]): void {
  const path = join(historiesFolder, release);
  for (const file of readdirSync(path)) {
    if (!names.includes(basename(file, '.json'))) rmSync(join(path, file));
  }
}

/** Who recorded it and on which machine is nobody's business, and replay asks for none of it. */
const dropped = new Set(['stackTrace', 'taskId', 'requestId', 'workerVersion', 'meteringMetadata']);
/** Process and host, as Temporal puts them into identities and the names of sticky queues. */
const processAndHost = /^\d+@[^\s-]+/;

function withoutTraces(value: unknown): unknown {
  if (typeof value === 'string') return value.replace(processAndHost, 'recorder');
  if (Array.isArray(value)) return value.map(withoutTraces);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !dropped.has(key))
      .map(([key, part]) => [key, key === 'identity' ? 'recorder' : withoutTraces(part)]),
  );
}

/** What the first event of a history says its workflow is. */
export function workflowTypeOf({ events }: RecordedHistory): string {
  const started = z.object({
    workflowExecutionStartedEventAttributes: z.object({
      workflowType: z.object({ name: z.string() }),
    }),
  });
  return started.parse(events[0]).workflowExecutionStartedEventAttributes.workflowType.name;
}
