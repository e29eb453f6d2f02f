/** Watches that do not come about, or are of no use, as errors. */
import { refused } from './refusal.ts';
import { listAttempt } from './proxyList.ts';
import { linesOf, WatchEnded } from './watchEvents.ts';

/** A watch that ended before it was of any use: closed right after it was opened, or with nothing told. */
export class WatchUseless extends Error {
  constructor(text: string) {
    super(text);
    this.name = 'WatchUseless';
  }
}

/** Answers of an API server that has no watch for us: asked again they are the same. */
function isForGood(status: number): boolean {
  return status >= 400 && status < 500 && status !== 401 && status !== 408 && status !== 429;
}

/** What an answer without a watch means; reads it to its end. */
export async function refusedWatch(
  status: number,
  chunks: AsyncIterable<Uint8Array>,
): Promise<Error> {
  let body = '';
  for await (const line of linesOf(chunks)) body += line;
  if (status === 410 || status === 404) return new WatchEnded(410, `HTTP ${status}`);
  const attempt = { ...listAttempt, object: `${listAttempt.object} (watch)` };
  const error = refused(attempt, { status, body: bodyOf(body) });
  return isForGood(status) ? new WatchUseless(error.message) : error;
}

function bodyOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
