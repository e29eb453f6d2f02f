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
const ended = z.object({
  type: z.literal('ERROR'),
  object: z.object({ code: z.int().default(500), message: z.string().default('no message') }),
});
const eventSchema = z.discriminatedUnion('type', [bookmark, change, ended]);

/** Lines of a byte stream, however it is cut. An unfinished last line is dropped: the connection broke inside it. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') yield line;
  }
}

/** One line as an event. Throws WatchEnded for the server's farewell, and an Error for anything else it is not. */
export function parseWatchEvent(line: string): WatchEvent {
  const parsed = eventSchema.safeParse(JSON.parse(line));
  if (!parsed.success) throw new Error('the watch delivered a line that is no watch event');
  const event = parsed.data;
  if (event.type === 'ERROR') throw new WatchEnded(event.object.code, event.object.message);
  if (event.type === 'BOOKMARK') {
    return { type: event.type, resourceVersion: event.object.metadata.resourceVersion };
  }
  return { type: event.type, object: event.object };
}
