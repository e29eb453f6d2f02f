import { setTimeout as realDelay } from 'node:timers/promises';
import { Agent, fetch, FormData, type Response } from 'undici';
import { parseUpid } from '../tasks.ts';
import { IDLE_MS, type Lab } from './lab.ts';
import { differences, normaliseBody, normaliseText } from './normalise.ts';
import type { Capture } from './captures.ts';
import { encodeRequest, sendBytes, SECRET } from './wire.ts';

const OPERATOR = 'proxy-operator@pve!operator';

/** Two clones of one VMID on two nodes: both are accepted, one of them is made. Who wins is chance. */
export async function replayRace(
  lab: Lab,
  capture: Extract<Capture, { kind: 'race' }>,
): Promise<string[]> {
  const newid = Number(/newid (\d+)/.exec(capture.note)?.[1]);
  const expected: unknown[] = [];
  const actual: unknown[] = [];
  // The last one first, as it went: later captures go on with its VM.
  for (const { response, task } of Object.values(capture.results).toReversed()) {
    const upid = parseUpid(/"data":"(UPID:[^"]+)"/.exec(response.body ?? '')?.[1] ?? '');
    const node = upid?.node ?? '';
    const path = `/api2/json/nodes/${node}/qemu/${upid?.id ?? ''}/clone`;
    const bytes = encodeRequest(
      { method: 'POST', path, params: { newid } },
      { text: (text) => text },
    );
    const { reaction } = await lab.exchange(node, bytes);
    const own =
      reaction === 'closed' ? '' : (/"data":"(UPID:[^"]+)"/.exec(reaction.body)?.[1] ?? '');
    const ownNode = parseUpid(own)?.node;
    expected.push({ status: response.statusLine, exit: anyNode(task.exitstatus), node });
    actual.push({
      status: reaction === 'closed' ? 'closed' : `HTTP/1.1 ${reaction.status} ${reaction.reason}`,
      exit: own,
      node: ownNode,
    });
  }
  for (const entry of actual) {
    if (typeof entry !== 'object' || entry === null || !('exit' in entry)) continue;
    const upid = String(entry.exit);
    await lab.ended(upid);
    Object.assign(entry, { exit: anyNode(lab.simulator.core.tasks.find(upid)?.exitstatus ?? '') });
  }
  return differences(expected, actual, 'outcomes');
}

function anyNode(text: string): string {
  return text.replace(/nodes\/[^/]+\//, 'nodes/<node>/');
}

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

/** Lets virtual time go on while answers are due, until `work` is done. */
async function passing<T>(lab: Lab, work: Promise<T>): Promise<T> {
  let done = false;
  const ended = work.finally(() => {
    done = true;
  });
  const isDone = (): boolean => done;
  while (!isDone()) {
    await realDelay(1);
    const due = lab.simulator.requests.slice(-30).some((request) => !request.answered);
    if (due && !isDone()) await lab.clock.step();
  }
  return ended;
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

/** How many of the captured writes may have had another fate: which worker takes what is chance. */
const CHANCE = 2;

/** Writes that wait for a lock in each of pvedaemon's three workers, and what others see meanwhile. */
export async function replayBlocked(
  lab: Lab,
  capture: Extract<Capture, { kind: 'blocked' }>,
  ca: string,
): Promise<string[]> {
  const { simulator, clock } = lab;
  const vmid = /lock-(\d+)\.conf/.exec(JSON.stringify(capture.results))?.[1] ?? '';
  simulator.holdLock(`/var/lock/qemu-server/lock-${vmid}.conf`, 120, 'pve1');
  const { hostname, port } = new URL(simulator.url);
  const send = (
    method: string,
    path: string,
    params: Record<string, string> = {},
  ): Promise<unknown> => {
    const bytes = encodeRequest(
      { method, path: `/api2/json${path}`, params },
      { text: (text) => text },
    );
    return sendBytes({ host: hostname, port: Number(port), ca }, bytes, () => undefined);
  };
  const writes = capture.results.filter(({ n }) => typeof n === 'number');
  const before = simulator.requests.length;
  const arrived = async (count: number): Promise<void> => {
    while (simulator.requests.length < before + count) await realDelay(1);
  };
  const sent = writes.map(() => send('PUT', `/nodes/pve1/qemu/${vmid}/config`, { onboot: '1' }));
  await arrived(writes.length);
  await clock.advanceTo(clock.now() + 500);
  const read = '/nodes/pve1/qemu/9001/status/current';
  sent.push(send('GET', read), send('GET', '/version'));
  await arrived(writes.length + 2);
  await passing(lab, Promise.all(sent));
  await passing(lab, send('GET', read));
  const own = simulator.requests.slice(before);
  const answers = own.filter(({ method }) => method === 'PUT');
  const seconds = (path: string): number[] =>
    own.filter((request) => request.path === path).map(({ durationMs }) => durationMs / 1000);
  const [blockedRead = 0, laterRead = 0] = seconds(read);
  const found: string[] = [];
  const count = (statuses: readonly string[], text: string): number =>
    statuses.filter((status) => status.includes(text)).length;
  const captured = writes.map(({ statusLine }) => statusLine);
  const simulated = answers.map(({ status, reason }) => `HTTP/1.1 ${status} ${reason}`);
  for (const text of ['500 can', '596']) {
    const [expected, actual] = [count(captured, text), count(simulated, text)];
    if (Math.abs(expected - actual) > CHANCE)
      found.push(`«${text}»: captured ${expected}, simulated ${actual}`);
  }
  if (count(simulated, '596 Broken pipe') === 0) found.push('no broken pipe');
  const kinds = new Set(captured);
  for (const line of simulated) if (!kinds.has(line)) found.push(`simulated ${line}`);
  const sorted = (list: number[]): number[] => list.toSorted((a, b) => a - b);
  const expected = sorted(writes.map(({ elapsedSeconds }) => elapsedSeconds));
  for (const [index, at] of sorted(answers.map(({ durationMs }) => durationMs / 1000)).entries()) {
    const wanted = expected[index] ?? 0;
    if (Math.abs(at - wanted) > 10.5)
      found.push(`answer ${index}: after ${wanted} s, simulated ${at} s`);
  }
  if (blockedRead < 9) found.push(`a read of another VM took ${blockedRead} s`);
  if (laterRead > 1) found.push(`a later read took ${laterRead} s`);
  if ((seconds('/version')[0] ?? 9) > 1) found.push('/version did not answer at once');
  return found;
}
