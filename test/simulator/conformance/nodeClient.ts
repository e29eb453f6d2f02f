import { setTimeout as realDelay } from 'node:timers/promises';
import { Agent, fetch, FormData, type Response } from 'undici';
import type { Capture } from './captures.ts';
import { IDLE_MS, passing, type Lab } from './lab.ts';
import { differences, normaliseBody, normaliseText } from './normalise.ts';
import { SECRET } from './wire.ts';

const OPERATOR = 'proxy-operator@pve!operator';

/** What one call of the captured client program came to. */
interface Seen {
  status?: number;
  statusText?: string;
  headers?: Record<string, string>;
  body?: string;
  error?: string;
  ok?: number;
}

const COMPARED = ['connection', 'content-type', 'content-encoding', 'server', 'cache-control'];
const PRESENT = ['content-length', 'date', 'expires'];

/** The captured program again, on undici's fetch: Node's own is the same code. */
export async function replayFetches(
  lab: Lab,
  capture: Extract<Capture, { kind: 'fetches' }>,
  ca: string,
): Promise<string[]> {
  const dispatcher = new Agent({ connect: { ca, servername: 'localhost' } });
  const calls = clientCalls(lab, dispatcher, ca);
  const found: string[] = [];
  // Two hundred handshakes at once take longer than our short patience with idle connections.
  lab.simulator.setIdleMs(5000);
  try {
    for (const result of capture.results) {
      const call = calls[result.name];
      if (call === undefined) {
        found.push(`${result.name}: no such call`);
        continue;
      }
      const seen = await passing(lab, outcome(call));
      found.push(...compareSeen(result, seen).map((line) => `${result.name}: ${line}`));
    }
  } finally {
    lab.simulator.setIdleMs(IDLE_MS);
    await dispatcher.close();
  }
  return found;
}

async function outcome(call: () => Promise<Response | number>): Promise<Seen> {
  try {
    const answer = await call();
    if (typeof answer === 'number') return { ok: answer };
    return {
      status: answer.status,
      statusText: answer.statusText,
      headers: Object.fromEntries(answer.headers),
      body: await answer.text(),
    };
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    const code = typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : '';
    return { error: String(code) };
  }
}

function compareSeen(captured: Readonly<Record<string, unknown>>, seen: Seen): string[] {
  if (captured['error'] !== undefined) return differences(captured['cause'], seen.error, 'cause');
  if (captured['ok'] !== undefined) return differences(captured['ok'], seen.ok, 'answers');
  const headers = captured['headers'];
  const given: Record<string, unknown> = typeof headers === 'object' ? { ...headers } : {};
  const own = seen.headers ?? {};
  const context = { path: '', knownMacs: new Set<string>(), knownUuids: new Set<string>() };
  const body = String(captured['body']);
  // The program cut long bodies off.
  const whole = !body.startsWith('{') || body.endsWith('}');
  return [
    ...differences(captured['status'], seen.status, 'status'),
    ...differences(
      normaliseText(String(captured['statusText']), context),
      normaliseText(seen.statusText ?? '', context),
      'reason',
    ),
    ...COMPARED.flatMap((name) => differences(given[name], own[name], name)),
    ...PRESENT.flatMap((name) => differences(name in given, name in own, name)),
    ...(whole
      ? differences(normaliseBody(body, context), normaliseBody(seen.body ?? '', context), 'body')
      : []),
  ];
}

type Call = () => Promise<Response | number>;

function clientCalls(lab: Lab, dispatcher: Agent, ca: string): Readonly<Record<string, Call>> {
  const go = (
    path: string,
    init: Parameters<typeof fetch>[1] = {},
    token = OPERATOR,
    secret = SECRET,
  ): Promise<Response> =>
    fetch(`${lab.simulator.url}/api2/json${path}`, {
      dispatcher,
      ...init,
      headers: { ...headersOf(init), authorization: `PVEAPIToken=${token}=${secret}` },
    });
  const version = async (): Promise<boolean> => {
    const answer = await go('/version');
    await answer.text();
    return answer.status === 200;
  };
  const upload = (
    parts: readonly (readonly [string, string | Blob, string?])[],
    token?: string,
  ): Call => {
    return () => {
      const form = new FormData();
      for (const [key, value, name] of parts) {
        if (typeof value === 'string') form.append(key, value);
        else if (name === undefined) form.append(key, value);
        else form.append(key, value, name);
      }
      return go('/nodes/pve1/storage/proxy-seeds/upload', { method: 'POST', body: form }, token);
    };
  };
  const bytes = (size: number): Blob => new Blob([new Uint8Array(size)]);
  const config = '/nodes/pve1/qemu/110/config';
  const form = new URLSearchParams({ onboot: '1' });
  return {
    'fetch GET /version': () => go('/version'),
    'fetch PUT URLSearchParams': () => go(config, { method: 'PUT', body: form }),
    'fetch PUT string body no content type': () => go(config, { method: 'PUT', body: 'onboot=1' }),
    'fetch POST no body': () => go('/nodes/pve1/qemu/110/status/stop', { method: 'POST' }),
    'fetch DELETE missing VM': () => go('/nodes/pve1/qemu/9099', { method: 'DELETE' }),
    'fetch upload FormData(content, filename)': upload([
      ['content', 'iso'],
      ['filename', bytes(374_784), 'node-fd.iso'],
    ]),
    'fetch upload FormData file first': upload([
      ['filename', bytes(374_784), 'node-ff.iso'],
      ['content', 'iso'],
    ]),
    'fetch upload FormData File': upload([
      ['content', 'iso'],
      ['filename', new File([new Uint8Array(374_784)], 'node-file.iso')],
    ]),
    'fetch upload FormData blob without name': upload([
      ['content', 'iso'],
      ['filename', bytes(1000)],
    ]),
    'fetch upload stream body (chunked)': () =>
      go('/nodes/pve1/storage/proxy-seeds/upload', {
        method: 'POST',
        body: new Blob(['data']).stream(),
        duplex: 'half',
        headers: { 'content-type': 'multipart/form-data; boundary=x' },
      }),
    'fetch upload 40 MiB': upload([
      ['content', 'iso'],
      ['filename', bytes(40 * 1024 ** 2), 'big.iso'],
    ]),
    'fetch upload 8 MiB without privilege': upload(
      [
        ['content', 'iso'],
        ['filename', bytes(8 * 1024 ** 2), 'never.iso'],
      ],
      'notmpl@pve!tok',
    ),
    'fetch 401': () => go('/version', {}, OPERATOR, '00000000-0000-4000-8000-00000000dead'),
    'fetch gzip': () => go('/access/permissions'),
    '250 sequential fetches': async () => {
      let good = 0;
      for (let index = 0; index < 250; index += 1) if (await version()) good += 1;
      return good;
    },
    '200 parallel fetches': async () => {
      const all = await Promise.all(Array.from({ length: 200 }, version));
      return all.filter(Boolean).length;
    },
    'fetch after 5.2 s idle': async () => {
      lab.simulator.setIdleMs(IDLE_MS);
      const fresh = new Agent({ connect: { ca, servername: 'localhost' } });
      await (await go('/version', { dispatcher: fresh })).text();
      await realDelay((IDLE_MS * 5.2) / 5);
      return go('/version', { dispatcher: fresh });
    },
  };
}

function headersOf(init: Parameters<typeof fetch>[1]): Record<string, string> {
  const given = init?.headers;
  return typeof given === 'object' && 'content-type' in given
    ? { 'content-type': given['content-type'] }
    : {};
}

/** Refused uploads of growing size: an answer after three seconds, or a cut connection at once. */
export async function replayDenied(
  lab: Lab,
  capture: Extract<Capture, { kind: 'denied' }>,
  ca: string,
): Promise<string[]> {
  const dispatcher = new Agent({ connect: { ca, servername: 'localhost' } });
  const found: string[] = [];
  try {
    for (const { who, kib, ms, status, statusText } of capture.uploads) {
      const form = new FormData();
      form.append('content', 'iso');
      form.append('filename', new Blob([new Uint8Array(kib * 1024)]), 'denied.iso');
      const token = who === '403' ? 'notmpl@pve!tok' : OPERATOR;
      const secret = who === '403' ? SECRET : '00000000-0000-4000-8000-00000000dead';
      const started = lab.clock.now();
      const call = (): Promise<Response> =>
        fetch(`${lab.simulator.url}/api2/json/nodes/pve1/storage/proxy-seeds/upload`, {
          method: 'POST',
          body: form,
          headers: { authorization: `PVEAPIToken=${token}=${secret}` },
          dispatcher,
        });
      const seen = await passing(lab, outcome(call));
      const waited = lab.clock.now() - started;
      found.push(
        ...[
          ...differences(status, seen.status, 'status'),
          ...differences(statusText, seen.statusText, 'reason'),
          ...differences(status === undefined ? 'UND_ERR_SOCKET' : undefined, seen.error, 'cause'),
          ...differences(ms > 2000, waited > 2000, 'waited'),
        ].map((line) => `${who} ${kib} KiB: ${line}`),
      );
    }
  } finally {
    await dispatcher.close();
  }
  return found;
}
