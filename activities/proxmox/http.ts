/**
 * HTTP to one Proxmox VE cluster: one pool of connections, one bound a request, no retry. Answers come back as the
 * `data` of the body; every failure is a classified `ProviderError`.
 */
import { Pool } from 'undici';
import {
  connectTimeoutMs,
  temporalSilenceMs,
  tlsHandshakeTimeoutMs,
} from '../../workflows/contract/budgets.ts';
import type { CallContext } from './api.ts';
import { noFreeSlot, tooLateToWrite, unansweredByTemporal } from './classifyTransport.ts';
import { createConnector } from './connect.ts';
import type { Connector } from './connect.ts';
import { readToken, trustLoader } from './credentials.ts';
import type { Trust } from './credentials.ts';
import { exchange, startClock } from './exchange.ts';
import type { HttpRequest } from './exchange.ts';
import { Slots } from './slots.ts';
import type { Attempt } from './classifyVerdict.ts';

/** How one provider is reached. Nothing connects before the first request. */
export interface ConnectionSettings {
  provider: string;
  /** `https://<host>:<port>`, without a path. */
  url: string;
  tokenFile: string;
  caFile: string | null;
  insecureSkipTLSVerify: boolean;
  /** Bound of one request, response included. */
  requestBoundMs: number;
}

/** Limits that only tests change. */
export interface HttpLimits {
  connections: number;
  writes: number;
  idleMs: number;
  tcpTimeoutMs: number;
  tlsTimeoutMs: number;
  maxAnswerBytes: number;
}

/** Design §4. pveproxy closes idle connections after 5 s; a listing of 10,000 VMs is some 6 MB. */
export const defaultLimits: HttpLimits = {
  connections: 8,
  writes: 4,
  idleMs: 4_000,
  tcpTimeoutMs: connectTimeoutMs,
  tlsTimeoutMs: tlsHandshakeTimeoutMs,
  maxAnswerBytes: 32 * 1024 * 1024,
};

export interface ProxmoxHttp {
  /** Sends one request and returns `data`. Throws `ProviderError`, or the reason of `call.signal` when that aborts. */
  send(call: CallContext, request: HttpRequest): Promise<unknown>;
  /** `<user>@<realm>!<tokenid>` of the token file. */
  tokenId(): Promise<string>;
  /** Waits for requests under way, then closes every connection. */
  close(): Promise<void>;
}

interface OpenPool {
  version: string;
  pool: Pool;
  connector: Connector;
}

/** HTTP client of one provider. `now` (epoch ms) is what `writesUntilMs` is compared with. */
export function createProxmoxHttp(
  settings: ConnectionSettings,
  limits: HttpLimits = defaultLimits,
  now: () => number = Date.now,
): ProxmoxHttp {
  const { provider, tokenFile } = settings;
  const origin = new URL(settings.url).origin;
  const address = new URL(settings.url).host;
  const loadTrust = trustLoader(provider, settings.insecureSkipTLSVerify ? null : settings.caFile);
  const slots = new Slots({ total: limits.connections, writes: limits.writes });
  const closing = new Set<Promise<void>>();
  let open: OpenPool | null = null;

  /** A changed CA file makes a new pool; requests under way end on the old one. */
  function poolFor(trust: Trust): Pool {
    if (open?.version === trust.version) return open.pool;
    if (open !== null) retire(open);
    open = createPool(origin, trust, settings, limits);
    return open.pool;
  }

  /** Lets requests under way end, then closes what is left: idle connections and attempts nobody waits for. */
  function retire(old: OpenPool): void {
    const done = old.pool
      .close()
      .catch(() => old.pool.destroy())
      .then(() => old.connector.abandon())
      .finally(() => closing.delete(done));
    closing.add(done);
  }

  async function send(call: CallContext, request: HttpRequest): Promise<unknown> {
    const { attempt } = request;
    const boundMs = settings.requestBoundMs + (request.extraMs ?? 0);
    const write = attempt.method !== 'GET';
    const release = await takeSlot(slots, call, attempt, boundMs);
    try {
      const token = await readToken(provider, tokenFile);
      const pool = poolFor(await loadTrust());
      call.signal.throwIfAborted();
      const leftMs = call.writesUntilMs - now();
      if (write && leftMs < boundMs) throw tooLateToWrite(attempt, leftMs, boundMs);
      const answeredAtMs = call.answeredAtMs?.() ?? Infinity;
      if (write && now() - answeredAtMs > temporalSilenceMs) throw unansweredByTemporal(attempt);
      const peer = { address, tokenId: token.id };
      return await exchange(pool, call.signal, request, {
        token,
        peer,
        boundMs,
        maxAnswerBytes: limits.maxAnswerBytes,
      });
    } finally {
      release();
    }
  }

  return {
    send,
    tokenId: async () => (await readToken(provider, tokenFile)).id,
    close: async () => {
      if (open !== null) retire(open);
      open = null;
      await Promise.allSettled(closing);
    },
  };
}

function createPool(
  origin: string,
  trust: Trust,
  settings: ConnectionSettings,
  limits: HttpLimits,
): OpenPool {
  const { insecureSkipTLSVerify } = settings;
  const { tcpTimeoutMs, tlsTimeoutMs } = limits;
  const connector = createConnector({
    ca: trust.ca,
    insecureSkipTLSVerify,
    tcpTimeoutMs,
    tlsTimeoutMs,
  });
  const pool = new Pool(origin, {
    connect: connector.connect,
    connections: limits.connections,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: limits.idleMs,
    keepAliveMaxTimeout: limits.idleMs,
    // The bound of the whole request does this work.
    headersTimeout: 0,
    bodyTimeout: 0,
    // A reason phrase repeats the first line of a message, which may be long.
    maxHeaderSize: 64 * 1024,
  });
  return { version: trust.version, pool, connector };
}

/** The wait for a connection has the request's bound too, so that a hung cluster cannot hold an attempt for ever. */
async function takeSlot(
  slots: Slots,
  call: CallContext,
  attempt: Attempt,
  boundMs: number,
): Promise<() => void> {
  const clock = startClock(boundMs, call.signal);
  try {
    return await slots.take(attempt.method !== 'GET', clock.signal);
  } catch {
    call.signal.throwIfAborted();
    throw noFreeSlot(attempt, boundMs / 1_000);
  } finally {
    clock.stop();
  }
}
