import type { CapturedRequest, CapturedResponse } from './captures.ts';
import type { Lab } from './lab.ts';
import { differences, normaliseBody, normaliseText, type NormaliseContext } from './normalise.ts';
import type { Answer, Reaction } from './wire.ts';

const KNOWN_HEADERS = [
  'Connection',
  'Content-Type',
  'Server',
  'Cache-Control',
  'Pragma',
  'Content-Encoding',
];

/** What was chosen so far, and the path asked. */
export function contextOf(lab: Lab, request: CapturedRequest | null): NormaliseContext {
  return {
    ...lab.chosen(),
    path: (request?.path ?? '').replace(/^\/api2\/json/, '').replace(/\?.*$/, ''),
  };
}

/** Differences of an answer from the captured one. */
export function compareAnswer(
  lab: Lab,
  request: CapturedRequest,
  response: CapturedResponse,
  reaction: Reaction,
): string[] {
  const expectsClose = !(response.statusLine ?? '').startsWith('HTTP/');
  if (reaction === 'closed') return expectsClose ? [] : ['connection closed without an answer'];
  if (expectsClose)
    return [
      `captured ${response.statusLine ?? 'no answer'}, simulated ${reaction.status} ${reaction.reason}`,
    ];
  const context = contextOf(lab, request);
  const statusLine = `HTTP/${reaction.version} ${reaction.status} ${reaction.reason}`;
  return [
    ...differences(
      normaliseText(response.statusLine ?? '', context),
      normaliseText(statusLine, context),
      'status line',
    ),
    ...compareHeaders(response.headers ?? {}, reaction),
    ...differences(
      normaliseBody(response.body ?? '', context),
      normaliseBody(reaction.body, context),
    ),
  ];
}

/** Differences of the headers that matter. */
export function compareHeaders(
  captured: Readonly<Record<string, string>>,
  answer: Answer,
): string[] {
  const found = KNOWN_HEADERS.flatMap((name) =>
    differences(captured[name], answer.headers[name], `header ${name}`),
  );
  for (const name of ['Content-Length', 'Date', 'Expires', 'Location']) {
    if (name in captured !== name in answer.headers) found.push(`header ${name}: only on one side`);
  }
  return found;
}
