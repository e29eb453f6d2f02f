/** A logger whose lines a test can read: parsed JSON, newest last. */
import { pino } from 'pino';
import type { Logger } from 'pino';

export interface RecordedLog {
  log: Logger;
  lines: Record<string, unknown>[];
}

/** Records everything from `trace` up and prints nothing. */
export function recordingLog(): RecordedLog {
  const lines: Record<string, unknown>[] = [];
  const log = pino(
    { level: 'trace' },
    { write: (line: string) => void lines.push(JSON.parse(line)) },
  );
  return { log, lines };
}
