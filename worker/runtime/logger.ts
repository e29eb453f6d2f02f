/** One pino per process: JSON lines, constant `msg`, facts in fields, three tiers (info, debug, trace). */
import { trace } from '@opentelemetry/api';
import type {
  LogMetadata,
  Logger as TemporalLogger,
  LogLevel as SdkLevel,
} from '@temporalio/common';
import { pino } from 'pino';
import type { DestinationStream, Logger } from 'pino';
import type { LogLevel } from './flags.ts';

/** Field names whose values never reach a log. A belt: no code hands them over anyway. */
const secretFields = [
  'token',
  'tokenSecret',
  'apiKey',
  'password',
  'credentials',
  'authorization',
  'Authorization',
  'proxy-authorization',
  'cookie',
  'cloudInit',
  'userData',
  'vendorData',
  'ca',
  'key',
];

const redactPaths = secretFields.flatMap((name) =>
  ['', '*.', '*.*.', '*.*.*.'].map((prefix) =>
    name.includes('-') ? `${prefix.replace(/\.$/, '')}["${name}"]` : `${prefix}${name}`,
  ),
);

/**
 * A logger that writes to standard output, or to `destination`. Lines inside a span carry traceID and spanID. A field that a line
 * gives is more precise than one of the same name that was bound before, and is the one that is written.
 */
export function createLogger(
  program: string,
  level: LogLevel,
  destination: DestinationStream = pino.destination(1),
): Logger {
  return pino(
    {
      level,
      base: { program },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: redactPaths, censor: '[redacted]' },
      mixin: spanFields,
    },
    { write: (line) => destination.write(`${withEachKeyOnce(line)}\n`) },
  );
}

/** pino writes bound fields and the line's own one after the other, also when they have one name; of a key, the last value counts. */
function withEachKeyOnce(line: string): string {
  return JSON.stringify(JSON.parse(line));
}

function spanFields(): Record<string, string> {
  const span = trace.getActiveSpan()?.spanContext();
  return span === undefined ? {} : { traceID: span.traceId, spanID: span.spanId };
}

/** The logger Temporal's Runtime is installed with: its lines go the same way, its `error` becomes `err`. */
export function temporalLogger(log: Logger): TemporalLogger {
  const write = (level: SdkLevel, message: string, meta: LogMetadata = {}): void => {
    const { error, ...fields } = meta;
    const line = error === undefined ? fields : { ...fields, err: error };
    log[pinoLevels[level]](line, message);
  };
  return {
    log: write,
    trace: (message, meta) => write('TRACE', message, meta),
    debug: (message, meta) => write('DEBUG', message, meta),
    info: (message, meta) => write('INFO', message, meta),
    warn: (message, meta) => write('WARN', message, meta),
    error: (message, meta) => write('ERROR', message, meta),
  };
}

const pinoLevels = {
  TRACE: 'trace',
  DEBUG: 'debug',
  INFO: 'info',
  WARN: 'warn',
  ERROR: 'error',
} as const satisfies Record<SdkLevel, string>;
