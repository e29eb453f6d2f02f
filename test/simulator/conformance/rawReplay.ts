import type { Capture } from './captures.ts';
import { compareHeaders, contextOf } from './compare.ts';
import { IDLE_MS, type Lab } from './lab.ts';
import { differences, normaliseBody, normaliseText } from './normalise.ts';
import { encodeRequest, parseAnswer, SECRET, sendPlain, type Reaction } from './wire.ts';

/** Plain HTTP on the TLS port. */
export async function replayPlain(
  lab: Lab,
  capture: Extract<Capture, { kind: 'plain' }>,
): Promise<string[]> {
  const location = /\r\nLocation: https:\/\/([^/\r]+)(\S*)/.exec(capture.rawResponse);
  const bytes = `GET ${location?.[2] ?? '/'} HTTP/1.1\r\nHost: ${location?.[1] ?? ''}\r\n\r\n`;
  const reaction = await sendPlain(lab.simulator.port, Buffer.from(bytes));
  return compareRaw(lab, capture.rawResponse, reaction);
}

/** The pauses shrink with the time that the server waits for more (5 s there, `IDLE_MS` here). */
export async function replayPaused(
  lab: Lab,
  capture: Extract<Capture, { kind: 'paused' }>,
): Promise<string[]> {
  const bytes = encodeRequest(
    {
      method: 'POST',
      path: '/api2/json/nodes/pve1/storage/proxy-seeds/upload',
      multipartParts: [
        { name: 'content', data: 'iso' },
        { name: 'filename', filename: 'slow.iso', data: '<374784 bytes>' },
      ],
    },
    { text: (text) => text },
  );
  const reaction = await lab.sendWithPauses(
    bytes,
    capture.pausesSeconds.map((seconds) => (seconds * IDLE_MS) / 5),
  );
  if (!capture.rawResponse.startsWith('HTTP/')) {
    return reaction === 'closed'
      ? []
      : [`captured a closed connection, simulated ${reaction.status} ${reaction.reason}`];
  }
  return compareRaw(lab, capture.rawResponse, reaction);
}

/** Bytes as they were sent. */
export async function replayRaw(
  lab: Lab,
  capture: Extract<Capture, { kind: 'raw' }>,
): Promise<string[]> {
  const bytes = Buffer.from(capture.rawRequest.replace('<secret>', SECRET), 'latin1');
  const { reaction } = await lab.exchange(Object.keys(lab.simulator.urls)[0] ?? '', bytes);
  return compareRaw(lab, capture.rawResponse, reaction);
}

function compareRaw(lab: Lab, captured: string, reaction: Reaction): string[] {
  const expected = parseAnswer(Buffer.from(captured, 'utf8'), true);
  if (expected === null)
    return reaction === 'closed' ? [] : ['captured silence, simulated an answer'];
  if (reaction === 'closed') return ['connection closed without an answer'];
  const context = contextOf(lab, null);
  return [
    ...differences(
      normaliseText(`HTTP/${expected.version} ${expected.status} ${expected.reason}`, context),
      normaliseText(`HTTP/${reaction.version} ${reaction.status} ${reaction.reason}`, context),
      'status line',
    ),
    ...compareHeaders(expected.headers, reaction),
    ...differences(normaliseBody(expected.body, context), normaliseBody(reaction.body, context)),
  ];
}
