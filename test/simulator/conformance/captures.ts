import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { timelineFile } from './timeline.ts';

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);

const part = z.union([
  z.object({ headers: z.array(z.string()), data: z.string() }),
  z.object({
    name: z.string(),
    filename: z.string().optional(),
    data: z.string().optional(),
    value: z.string().optional(),
    bytes: z.number().optional(),
  }),
]);

const request = z.looseObject({
  method: z.string(),
  path: z.string(),
  params: z.record(z.string(), z.union([scalar, z.array(scalar)])).nullish(),
  authorization: z.string().nullish(),
  headers: z.record(z.string(), z.string()).optional(),
  rawBody: z.string().optional(),
  multipartParts: z.array(part).optional(),
  multipart: z.array(part).optional(),
  /** Node whose API was asked, in captures of the two-node cluster. */
  api: z.string().optional(),
});

const response = z.looseObject({
  status: z.number().nullish(),
  statusLine: z.string().nullish(),
  headers: z.record(z.string(), z.string()).nullish(),
  body: z.string().nullish(),
});

const exchange = z.looseObject({
  note: z.string().nullish(),
  request,
  response,
  elapsedSeconds: z.number().nullish(),
});

const taskStatus = z.looseObject({ exitstatus: z.string().optional(), type: z.string() });
const concurrent = z.looseObject({
  note: z.string().nullish(),
  concurrent: z.array(
    z.looseObject({
      request,
      response,
      taskStatus: taskStatus.optional(),
      taskLog: z.array(z.looseObject({ t: z.string() })).optional(),
    }),
  ),
});
const raw = z.looseObject({
  note: z.string().nullish(),
  rawRequest: z.string(),
  rawResponse: z.string(),
});
const plain = z.looseObject({
  note: z.string().nullish(),
  rawResponse: z.string().includes('Location: https://'),
});
/** An upload whose body came with pauses. */
const paused = z.looseObject({
  note: z.string().nullish(),
  pausesSeconds: z.array(z.number()),
  rawResponse: z.string(),
});
const sequence = z.looseObject({
  note: z.string().nullish(),
  exchanges: z.array(z.looseObject({ t: z.number(), step: z.string(), request, response })),
});

/** Two clones at once, each on its own node. */
const race = z.looseObject({
  note: z.string(),
  results: z.record(
    z.string(),
    z.looseObject({ response, task: z.looseObject({ exitstatus: z.string() }) }),
  ),
});
/** What a client program on top of Node's fetch saw, call by call. */
const fetches = z.looseObject({
  undici: z.string(),
  results: z.array(z.looseObject({ name: z.string() })),
});
/** Uploads of growing size that were refused. */
const denied = z.array(
  z.looseObject({
    who: z.string(),
    kib: z.number(),
    ms: z.number(),
    status: z.number().optional(),
    statusText: z.string().optional(),
  }),
);
/** Many writes that all wait for one lock, and reads meanwhile. */
const blocked = z.looseObject({
  note: z.string(),
  results: z.array(
    z.looseObject({
      n: z.union([z.number(), z.string()]),
      elapsedSeconds: z.number(),
      statusLine: z.string(),
    }),
  ),
});

export type CapturedRequest = z.output<typeof request>;
export type CapturedResponse = z.output<typeof response>;
export type Part = z.output<typeof part>;

/** A captured file by what it holds. */
export type Capture = { name: string } & (
  | ({ kind: 'exchange' } & z.output<typeof exchange>)
  | ({ kind: 'concurrent' } & z.output<typeof concurrent>)
  | ({ kind: 'raw' } & z.output<typeof raw>)
  | ({ kind: 'plain' } & z.output<typeof plain>)
  | ({ kind: 'paused' } & z.output<typeof paused>)
  | ({ kind: 'sequence' } & z.output<typeof sequence>)
  | ({ kind: 'timeline' } & z.output<typeof timelineFile>)
  | ({ kind: 'race' } & z.output<typeof race>)
  | ({ kind: 'fetches' } & z.output<typeof fetches>)
  | { kind: 'denied'; uploads: z.output<typeof denied> }
  | ({ kind: 'blocked' } & z.output<typeof blocked>)
  | { kind: 'other'; why: string }
);

/** Reads every capture of a folder; files of another shape come back as `other`. */
export function readCaptures(folder: string): Map<string, Capture> {
  const captures = new Map<string, Capture>();
  for (const file of readdirSync(folder).sort()) {
    if (!file.endsWith('.json')) continue;
    const name = basename(file, '.json');
    captures.set(name, classify(name, JSON.parse(readFileSync(join(folder, file), 'utf8'))));
  }
  return captures;
}

function classify(name: string, data: unknown): Capture {
  const asConcurrent = concurrent.safeParse(data);
  if (asConcurrent.success) return { ...asConcurrent.data, name, kind: 'concurrent' };
  const asSequence = sequence.safeParse(data);
  if (asSequence.success) return { ...asSequence.data, name, kind: 'sequence' };
  const asExchange = exchange.safeParse(data);
  if (asExchange.success) return { ...asExchange.data, name, kind: 'exchange' };
  const asRaw = raw.safeParse(data);
  if (asRaw.success) return { ...asRaw.data, name, kind: 'raw' };
  const asPaused = paused.safeParse(data);
  if (asPaused.success) return { ...asPaused.data, name, kind: 'paused' };
  const asPlain = plain.safeParse(data);
  if (asPlain.success) return { ...asPlain.data, name, kind: 'plain' };
  const asTimeline = timelineFile.safeParse(data);
  if (asTimeline.success) return { ...asTimeline.data, name, kind: 'timeline' };
  const asRace = race.safeParse(data);
  if (asRace.success) return { ...asRace.data, name, kind: 'race' };
  const asFetches = fetches.safeParse(data);
  if (asFetches.success) return { ...asFetches.data, name, kind: 'fetches' };
  const asDenied = denied.safeParse(data);
  if (asDenied.success) return { name, kind: 'denied', uploads: asDenied.data };
  const asBlocked = blocked.safeParse(data);
  if (asBlocked.success) return { ...asBlocked.data, name, kind: 'blocked' };
  return { name, kind: 'other', why: 'no exchange that is known' };
}

/** Real ms at which the request was sent, from the answer's Date (whole seconds). */
export function capturedAt(capture: Capture): number | null {
  switch (capture.kind) {
    case 'exchange':
      return dateOf(capture.response, capture.elapsedSeconds ?? 0);
    case 'concurrent':
      return dateOf(capture.concurrent[0]?.response, 0);
    case 'sequence':
      return dateOf(capture.exchanges[0]?.response, 0);
    case 'raw':
    case 'plain':
    case 'paused':
      return parseDate(/\r\nDate: ([^\r]+)/.exec(capture.rawResponse)?.[1]);
    case 'timeline':
    case 'race':
    case 'fetches':
    case 'denied':
    case 'blocked':
    case 'other':
      return null;
    default:
      return null;
  }
}

function dateOf(answer: CapturedResponse | undefined, elapsed: number): number | null {
  const date = parseDate(answer?.headers?.['Date']);
  const waited = elapsed > 0 ? elapsed : usualWait(answer?.statusLine ?? '');
  return date === null ? null : date - waited * 1000;
}

/** Date is when the answer was made; these take their time, where nobody measured it. */
function usualWait(statusLine: string): number {
  if (/ 401 | 595 No route|QEMU guest agent is not running/.test(statusLine)) return 3;
  return /can't lock file .* got timeout/.test(statusLine) ? 10 : 0;
}

function parseDate(text: string | undefined): number | null {
  const ms = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(ms) ? null : ms;
}
