import { createHash } from 'node:crypto';
import { connect, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { errorCode } from './program.ts';

/**
 * Locks between processes of one machine: an abstract Unix socket whose name stands for the thing locked.
 * The kernel frees it when its holder dies, however it dies, so there is no stale lock to judge; and whoever waits
 * learns from the socket who holds it. Linux only, as the rest of the local stack.
 */
export interface Lock {
  release(): void;
}

/** Who holds a lock: its process ID and what it is doing. */
export interface LockHolder {
  pid: number;
  what: string;
}

/** Takes the lock when it is free; undefined when another process, or another part of this one, holds it. */
export async function tryLock(name: string, what: string): Promise<Lock | undefined> {
  const server = createServer();
  const clients = new Set<Socket>();
  server.on('connection', (socket) => {
    clients.add(socket);
    socket.unref();
    socket.on('close', () => clients.delete(socket)).on('error', () => undefined);
    socket.write(`${process.pid} ${what}\n`);
  });
  if (!(await listen(server, socketPath(name)))) return undefined;
  // A lock does not keep its process alive.
  server.unref();
  return {
    release: () => {
      server.close();
      for (const socket of clients) socket.destroy();
    },
  };
}

/** Waits until the lock is free and takes it; `onWait` is told each holder it waits for. Throws the signal's reason. */
export async function waitForLock(
  name: string,
  what: string,
  onWait: (holder: LockHolder) => void,
  signal: AbortSignal,
): Promise<Lock> {
  for (;;) {
    signal.throwIfAborted();
    const lock = await tryLock(name, what);
    if (lock !== undefined) return lock;
    await untilReleased(name, onWait, signal);
  }
}

/** The holder of a lock, undefined when it is free. */
export async function lockHolder(name: string): Promise<LockHolder | undefined> {
  const answer: { holder?: LockHolder } = {};
  const asked = new AbortController();
  await untilReleased(
    name,
    (holder) => {
      answer.holder = holder;
      asked.abort();
    },
    asked.signal,
  );
  return answer.holder;
}

function untilReleased(
  name: string,
  onHolder: (holder: LockHolder) => void,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ path: socketPath(name) });
    let text = '';
    socket.setEncoding('utf8').on('data', (piece: string) => {
      const complete = text.includes('\n');
      text += piece;
      const line = /^(\d+) (.*)\n/.exec(text);
      if (!complete && line !== null) onHolder({ pid: Number(line[1]), what: line[2] ?? '' });
    });
    // Refused means that it was released in the meantime.
    socket.on('error', () => undefined);
    const leave = (): void => void socket.destroy();
    signal.addEventListener('abort', leave, { once: true });
    socket.on('close', () => {
      signal.removeEventListener('abort', leave);
      resolve();
    });
  });
}

/** Names are hashed because an abstract name holds at most 107 bytes, and paths are longer; users do not share locks. */
function socketPath(name: string): string {
  const user = process.getuid?.() ?? 0;
  const hash = createHash('sha256').update(`${user} ${name}`).digest('hex').slice(0, 40);
  return `\0egress-proxies-operator-${hash}`;
}

function listen(server: Server, path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      if (errorCode(error) === 'EADDRINUSE') resolve(false);
      else reject(error);
    });
    server.listen({ path }, () => resolve(true));
  });
}
