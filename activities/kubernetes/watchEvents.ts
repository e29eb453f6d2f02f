/** The wire format of a Kubernetes watch: JSON lines in chunks of any size. */
import { z } from 'zod';

/** What the cache needs to know of an object before (and whether or not) it parses as a Proxy. */
export const identitySchema = z.looseObject({
  metadata: z.looseObject({ uid: z.string(), resourceVersion: z.string() }),
});
export type Identified = z.output<typeof identitySchema>;

export type WatchEvent =
  | { type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: Identified }
  | { type: 'BOOKMARK'; resourceVersion: string };

/** The server ended the watch with a message. `expired`: its resourceVersion is too old, list again. */
export class WatchEnded extends Error {
  readonly expired: boolean;

  constructor(status: number, message: string) {
    super(`the watch was ended with ${status}: ${message}`);
    this.name = 'WatchEnded';
    this.expired = status === 410;
  }
}

const bookmark = z.object({
  type: z.literal('BOOKMARK'),
  object: z.object({ metadata: z.object({ resourceVersion: z.string() }) }),
});
const change = z.object({
  type: z.enum(['ADDED', 'MODIFIED', 'DELETED']),
  object: identitySchema,
});
// A Status, of which no field is certain: whatever it is, the watch is over.
const ended = z.object({
  type: z.literal('ERROR'),
  object: z
    .object({
      code: z.int().catch(500),
      reason: z.string().catch(''),
      message: z.string().catch('no message'),
    })
    .catch({ code: 500, reason: '', message: 'no message' }),
});
/** Reasons of a Status that mean 410, also where it has another code. */
const expiredReasons = ['Expired', 'Gone'];
/** No object of Kubernetes is so large; what never ends a line would fill the memory. */
const maxLineChars = 16 * 1024 * 1024;
const eventSchema = z.discriminatedUnion('type', [bookmark, change, ended]);

/** Lines of a byte stream, however it is cut. An unfinished last line is dropped: the connection broke inside it. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    // Only the new text is looked through: a large object comes in many chunks.
    const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n');
    const lines = [rest + first, ...others];
    rest = lines.pop() ?? '';
    if (rest.length > maxLineChars) {
      throw new Error('the watch delivered a line without an end');
    }
    for (const line of lines) if (line.trim() !== '') yield line;
  }
}

/** One line as an event. Throws WatchEnded for the server's farewell, and an Error for anything else it is not. */
export function parseWatchEvent(line: string): WatchEvent {
  const parsed = eventSchema.safeParse(jsonOf(line));
  if (!parsed.success) throw new Error('the watch delivered a line that is no watch event');
  const event = parsed.data;
  if (event.type === 'ERROR') {
    const { code, reason, message } = event.object;
    throw new WatchEnded(expiredReasons.includes(reason) ? 410 : code, message);
  }
  if (event.type === 'BOOKMARK') {
    return { type: event.type, resourceVersion: event.object.metadata.resourceVersion };
  }
  return { type: event.type, object: event.object };
}

/** Not `JSON.parse` alone: its error quotes the line, which may hold cloud-init. */
function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
