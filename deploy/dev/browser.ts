import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { lastLines } from './command.ts';
import { signalGroup } from './processRecord.ts';
import { UserError, errorCode } from './program.ts';

/** A headless Chromium, driven over its DevTools protocol: pictures need no package of their own for that. */
export interface Browser {
  /** Opens a page of that size in CSS pixels. */
  open(url: string, size: { width: number; height: number }): Promise<BrowserPage>;
  /** Ends it; may be called twice. */
  close(): Promise<void>;
}

export interface BrowserPage {
  /** Value of a JavaScript expression in the page; a promise is awaited. Throws with the page's exception. */
  evaluate(expression: string): Promise<unknown>;
  /** Polls until the expression is true; throws UserError naming `what` and the text of the page. */
  until(what: string, expression: string): Promise<void>;
  /** A part of what the page shows now, as PNG. */
  picture(part: Part): Promise<Buffer>;
}

/** In CSS pixels. */
export interface Part {
  x: number;
  y: number;
  width: number;
  height: number;
}

type Send = (method: string, params: object, sessionId?: string) => Promise<unknown>;

/** Debian's name first. `CHROMIUM` names another one. */
const programs = ['chromium', 'chromium-browser', 'google-chrome'];
const startMs = 60_000;
const untilMs = 60_000;
const pollMs = 100;

/** Starts it. Throws UserError when there is none, or when it does not come up. */
export async function startBrowser(): Promise<Browser> {
  const profile = mkdtempSync(join(tmpdir(), 'egress-proxies-browser-'));
  const { child, url } = await launch(profile).catch((error: unknown) => {
    rmSync(profile, { recursive: true, force: true });
    throw error;
  });
  const kill = (): void => {
    if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL');
  };
  process.on('exit', kill);
  const exited = new Promise<void>((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve();
    else child.once('exit', () => resolve());
  });
  const { send, disconnect } = await connect(url);
  const close = async (): Promise<void> => {
    disconnect();
    kill();
    await exited;
    process.off('exit', kill);
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  let closed: Promise<void> | undefined;
  return {
    open: (page, size) => openPage(send, page, size),
    close: () => (closed ??= close()),
  };
}

async function launch(profile: string): Promise<{ child: ChildProcess; url: string }> {
  const named = process.env['CHROMIUM'];
  for (const program of named === undefined ? programs : [named]) {
    const child = spawn(program, flags(profile), {
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true,
    });
    const url = await addressOf(child);
    if (url !== undefined) return { child, url };
  }
  throw new UserError(
    `No Chromium was found (${named ?? programs.join(', ')}): install Debian's package chromium, or name one in CHROMIUM.`,
  );
}

function flags(profile: string): string[] {
  return [
    '--headless=new',
    '--remote-debugging-port=0',
    `--user-data-dir=${profile}`,
    '--no-first-run',
    '--disable-gpu',
    '--disable-dev-shm-usage',
    '--hide-scrollbars',
    '--force-color-profile=srgb',
    // Nothing but the stack of this machine is looked at; no proxy of the environment is between.
    '--no-proxy-server',
    // Chromium's sandbox refuses to run as root.
    ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
    'about:blank',
  ];
}

/** The address of its DevTools, as it prints it; undefined when there is no such program. Throws UserError when it ends first. */
function addressOf(child: ChildProcess): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    let said = '';
    const fail = (why: string): void => {
      if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL');
      reject(new UserError(`Chromium ${why}: ${lastLines(said, 3)}`));
    };
    const timer = setTimeout(() => fail('did not start in time'), startMs);
    child.once('error', (error) => {
      clearTimeout(timer);
      if (errorCode(error) === 'ENOENT') resolve(undefined);
      else reject(error);
    });
    const ended = (): void => {
      clearTimeout(timer);
      fail('ended while starting');
    };
    child.once('exit', ended);
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      const [, url] = /DevTools listening on (ws:\S+)/.exec(said) ?? [];
      if (url === undefined) return;
      clearTimeout(timer);
      child.off('exit', ended);
      resolve(url);
    });
  });
}

const answer = z.object({
  id: z.number().optional(),
  result: z.unknown().optional(),
  error: z.object({ message: z.string() }).optional(),
});

/** Requests and answers over one WebSocket, told apart by number. */
async function connect(url: string): Promise<{ send: Send; disconnect: () => void }> {
  const socket = new WebSocket(url);
  const waiting = new Map<number, (message: z.output<typeof answer>) => void>();
  let last = 0;
  socket.addEventListener('close', () => {
    for (const [id, tell] of waiting) tell({ id, error: { message: 'Chromium has ended' } });
    waiting.clear();
  });
  socket.addEventListener('message', ({ data }) => {
    const message = answer.parse(JSON.parse(String(data)));
    if (message.id === undefined) return;
    waiting.get(message.id)?.(message);
    waiting.delete(message.id);
  });
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve(), { once: true });
    socket.addEventListener('error', () => reject(new UserError(`No connection to ${url}.`)), { once: true }); // prettier-ignore
  });
  const send: Send = (method, params, sessionId) =>
    new Promise((resolve, reject) => {
      if (socket.readyState !== WebSocket.OPEN) return reject(new Error('Chromium has ended'));
      last += 1;
      waiting.set(last, ({ error, result }) => {
        if (error === undefined) resolve(result);
        else reject(new Error(`${method}: ${error.message}`));
      });
      socket.send(JSON.stringify({ id: last, method, params, sessionId }));
    });
  return { send, disconnect: () => socket.close() };
}

const target = z.object({ targetId: z.string() });
const session = z.object({ sessionId: z.string() });
const screenshot = z.object({ data: z.string() });
const evaluation = z.object({
  result: z.object({ value: z.unknown().optional() }),
  exceptionDetails: z.looseObject({ text: z.string() }).optional(),
});

async function openPage(
  send: Send,
  url: string,
  size: { width: number; height: number },
): Promise<BrowserPage> {
  const { targetId } = target.parse(await send('Target.createTarget', { url: 'about:blank' }));
  const { sessionId } = session.parse(
    await send('Target.attachToTarget', { targetId, flatten: true }),
  );
  const inPage = (method: string, params: object): Promise<unknown> =>
    send(method, params, sessionId);
  const evaluate = async (expression: string): Promise<unknown> => {
    const options = { expression, returnByValue: true, awaitPromise: true };
    const { result, exceptionDetails } = evaluation.parse(
      await inPage('Runtime.evaluate', options),
    );
    if (exceptionDetails) throw new Error(`${expression}: ${JSON.stringify(exceptionDetails)}`);
    return result.value;
  };
  await inPage('Emulation.setDeviceMetricsOverride', {
    ...size,
    deviceScaleFactor: 1,
    mobile: false,
  });
  await inPage('Page.enable', {});
  await inPage('Page.navigate', { url });
  return {
    evaluate,
    until: async (what, expression) => {
      const deadline = Date.now() + untilMs;
      while ((await evaluate(expression)) !== true) {
        if (Date.now() > deadline) {
          const text = String(await evaluate("document.body?.innerText ?? ''"));
          throw new UserError(`${url} does not show ${what}; it shows: ${text.slice(0, 2_000)}`);
        }
        await pause(pollMs);
      }
    },
    picture: async (part) => {
      const options = { format: 'png', clip: { ...part, scale: 1 } };
      const { data } = screenshot.parse(await inPage('Page.captureScreenshot', options));
      return Buffer.from(data, 'base64');
    },
  };
}
