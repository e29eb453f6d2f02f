import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { tryLock } from './lock.ts';
import { UserError } from './program.ts';

/**
 * Below Linux's range for outgoing connections (32768 and up), so that no connection of any program takes the port of a
 * server that is down for a moment, and above the well-known ports.
 */
const first = 20_000;
const end = 32_000;
const attempts = 200;

/** A port of 127.0.0.1 that is ours until released, also while nothing listens on it. */
export interface ClaimedPort {
  port: number;
  release(): void;
}

/**
 * Claims a free port. Two stacks never get the same one: the claim is a lock that all our processes respect.
 * Throws UserError when none is free.
 */
export async function claimPort(): Promise<ClaimedPort> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const port = randomInt(first, end);
    const lock = await tryLock(`port ${port}`, `using port ${port}`);
    if (lock === undefined) continue;
    if (await isFree(port)) return { port, release: () => lock.release() };
    lock.release();
  }
  throw new UserError(
    `No free port was found between ${first} and ${end} on 127.0.0.1: end some of the programs that listen there (ss -tlnp lists them).`,
  );
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1' }, () => server.close(() => resolve(true)));
  });
}
