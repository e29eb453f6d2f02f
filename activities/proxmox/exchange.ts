/** One request on the wire and its answer: encoding, bound, size limit, parsing. */
import type { Dispatcher, Pool } from 'undici';
import { z } from 'zod';
import { ProviderError } from '../providerError.ts';
import { classifyAnswer } from './classify.ts';
import type { FailedAnswer } from './classify.ts';
import { BoundExceeded, classifyTransport, classifyUnreadable } from './classifyTransport.ts';
import type { Token } from './credentials.ts';
import type { Attempt, Peer } from './classifyVerdict.ts';

/** One request, described for both the wire and the error message. */
export interface HttpRequest {
  attempt: Attempt;
  /** Below `/api2/json`, encoded. */
  path: string;
  query?: Readonly<Record<string, string>>;
  form?: Readonly<Record<string, string>>;
  /** A ready multipart body. */
  multipart?: { contentType: string; body: Uint8Array };
  /** Added to the request bound (uploads). */
  extraMs?: number;
}

const answerSchema = z.looseObject({
  data: z.unknown(),
  message: z.string().optional().catch(undefined),
  // An answer without field errors, or with an empty list for an empty hash (Perl).
  errors: z.record(z.string(), z.coerce.string()).optional().catch(undefined),
});

/** What one exchange needs besides the request. */
export interface ExchangeContext {
  token: Token;
  peer: Peer;
  boundMs: number;
  maxAnswerBytes: number;
}

/**
 * Sends the request once and returns `data` of the answer. Throws `ProviderError`, or the reason of `signal` when
 * that aborts.
 */
export async function exchange(
  pool: Pool,
  signal: AbortSignal,
  request: HttpRequest,
  context: ExchangeContext,
): Promise<unknown> {
  const { attempt } = request;
  const clock = startClock(context.boundMs, signal);
  try {
    const response = await pool.request({
      ...wireForm(request, context.token),
      method: attempt.method,
      signal: clock.signal,
    });
    const text = await readAnswer(response, attempt, context.maxAnswerBytes);
    return dataOf(attempt, response, text, context);
  } catch (error) {
    if (error instanceof ProviderError) throw error;
    signal.throwIfAborted();
    throw classifyTransport(attempt, error, context.peer);
  } finally {
    clock.stop();
  }
}

/** Form bodies only on POST and PUT; a body on GET or DELETE is a 501 (pve/README 40). Never chunked. */
function wireForm(
  request: HttpRequest,
  token: Token,
): { path: string; headers: Record<string, string>; body: string | Uint8Array | null } {
  const query = new URLSearchParams(request.query).toString();
  const path = `/api2/json${request.path}${query === '' ? '' : `?${query}`}`;
  const headers = { authorization: token.authorization, accept: 'application/json' };
  if (request.multipart !== undefined) {
    const { contentType, body } = request.multipart;
    return { path, headers: { ...headers, 'content-type': contentType }, body };
  }
  if (request.form === undefined) return { path, headers, body: null };
  return {
    path,
    headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(request.form).toString(),
  };
}

async function readAnswer(
  response: Dispatcher.ResponseData,
  attempt: Attempt,
  maxBytes: number,
): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body) {
    const bytes: Uint8Array = chunk;
    size += bytes.byteLength;
    if (size > maxBytes) {
      const problem = `the answer is larger than ${maxBytes} bytes and was not read`;
      throw classifyUnreadable(attempt, problem, response.statusCode);
    }
    chunks.push(bytes);
  }
  return Buffer.concat(chunks, size).toString('utf8');
}

function dataOf(
  attempt: Attempt,
  response: Dispatcher.ResponseData,
  text: string,
  context: ExchangeContext,
): unknown {
  const { statusCode, statusText } = response;
  const answer = answerSchema.safeParse(parseJson(text));
  if (statusCode < 200 || statusCode > 299) {
    const failed: FailedAnswer = {
      status: statusCode,
      reason: statusText,
      message: answer.data?.message ?? null,
      errors: answer.data?.errors ?? {},
    };
    throw classifyAnswer(attempt, withoutSecret(failed, context.token), context.peer);
  }
  if (!answer.success) {
    const problem = `Proxmox answered ${statusCode} with a body that is not the API's JSON`;
    throw classifyUnreadable(attempt, problem, statusCode);
  }
  return answer.data.data;
}

function parseJson(text: string): unknown {
  try {
    const parsed: unknown = JSON.parse(text);
    return parsed;
  } catch {
    return undefined;
  }
}

/** Something between us and pveproxy may echo a request; the token must not come back in an error. */
function withoutSecret(answer: FailedAnswer, { secret }: Token): FailedAnswer {
  const clean = (text: string): string => text.replaceAll(secret, '<secret>');
  return {
    status: answer.status,
    reason: clean(answer.reason),
    message: answer.message === null ? null : clean(answer.message),
    errors: Object.fromEntries(
      Object.entries(answer.errors).map(([key, text]) => [key, clean(text)]),
    ),
  };
}

/** The call's signal with a bound on top, which aborts with `BoundExceeded`; `stop` ends the timer. */
export function startClock(
  boundMs: number,
  outer: AbortSignal,
): { signal: AbortSignal; stop(): void } {
  const bound = new AbortController();
  const timer = setTimeout(() => bound.abort(new BoundExceeded(boundMs / 1_000)), boundMs);
  return {
    signal: AbortSignal.any([bound.signal, outer]),
    stop: () => clearTimeout(timer),
  };
}
