/**
 * One real request through a proxy. Written on undici's Client and not on its ProxyAgent, which hides what is to be told
 * apart: it turns a 407 into an InvalidArgumentError and every refused CONNECT into an abort (undici 8.13).
 */
import { isIP, Socket } from 'node:net';
import { buildConnector, Client } from 'undici';
import type { ProbeReason } from '../../workflows/contract/messages.ts';
import { boundedLookup } from './lookup.ts';
import { describeProbeError } from './probeError.ts';

export interface ProbeRequest {
  /** IP address, or the host name of an External proxy. */
  ip: string;
  port: number;
  url: string;
  /** For the whole probe: connecting, tunnel, TLS, answer. */
  timeoutMs: number;
  /** `null`: any 2xx or 3xx. */
  expectedStatuses: readonly number[] | null;
  credentials: ProbeCredentials | null;
}
export interface ProbeCredentials {
  username: string;
  password: string;
}

export interface ProbeOutcome {
  healthy: boolean;
  reason: ProbeReason;
  message: string;
  /** It failed behind the proxy: the proxy took the request, the target (or the way to it) did not answer as expected. */
  pastProxy: boolean;
}

const lookup = boundedLookup();
const userAgent = 'egress-proxies-operator';
/** Enough for an error page; a target that sends more has answered. */
const maxBodyBytes = 64 * 1024;

/** Never rejects but for `signal`, with its reason. Credentials are in no message. */
export async function probe(request: ProbeRequest, signal: AbortSignal): Promise<ProbeOutcome> {
  const { ip, port, timeoutMs } = request;
  const target = URL.parse(request.url);
  const origin = URL.parse(`http://${isIP(ip) === 6 ? `[${ip}]` : ip}:${port}`);
  if (target === null) return unusable('the URL of the probe', 'spec.healthCheck.url');
  if (origin === null) return unusable('the address of the proxy', 'spec.address');
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const progress: Progress = { reached: false, tunnelled: false };
  const proxy = new Client(origin, {
    connect: noticing(progress, timeoutMs),
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  });
  try {
    const status =
      target.protocol === 'http:'
        ? await forward(proxy, target, request, limit)
        : await tunnel(proxy, target, request, limit, progress);
    return judge(status, request, target);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof TunnelRefused) return judge(error.status, request, target);
    return describeProbeError(error, { ip, port, host: target.host, timeoutMs, ...progress });
  } finally {
    await proxy.destroy();
  }
}

/** Kubernetes takes some URLs and hosts that nothing can be asked at: `http://10.0.0.300`, a port above 65535. */
function unusable(what: string, field: string): ProbeOutcome {
  const message = `${what} has a host or port that cannot be; correct ${field}`;
  return { healthy: false, reason: 'ProbeFailed', message, pastProxy: false };
}

/** How far a probe got. */
interface Progress {
  /** The TCP connection to the proxy came about. */
  reached: boolean;
  /** The proxy opened the tunnel: what fails from here on, fails past it. */
  tunnelled: boolean;
}

function noticing(progress: Progress, timeout: number): buildConnector.connector {
  const connector = buildConnector({ timeout, allowH2: false, lookup });
  return (options, callback) => {
    connector(options, (...result) => {
      progress.reached = result[0] === null;
      callback(...result);
    });
  };
}

/** A plain request with the whole URL in its first line: a Squid refuses CONNECT to anything but 443. */
async function forward(
  proxy: Client,
  target: URL,
  { credentials }: ProbeRequest,
  signal: AbortSignal,
): Promise<number> {
  const { statusCode, body } = await proxy.request({
    method: 'GET',
    path: `${target.origin}${target.pathname}${target.search}`,
    headers: { host: target.host, 'user-agent': userAgent, ...authorization(credentials) },
    signal,
  });
  await body.dump({ limit: maxBodyBytes, signal });
  return statusCode;
}

class TunnelRefused extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`CONNECT was answered with ${status}`);
    this.name = 'TunnelRefused';
    this.status = status;
  }
}

async function tunnel(
  proxy: Client,
  target: URL,
  { credentials, timeoutMs }: ProbeRequest,
  signal: AbortSignal,
  progress: Progress,
): Promise<number> {
  const authority = `${target.hostname}:${target.port === '' ? '443' : target.port}`;
  const { statusCode, socket } = await proxy.connect({
    path: authority,
    headers: { host: authority, 'user-agent': userAgent, ...authorization(credentials) },
    signal,
  });
  try {
    if (statusCode < 200 || statusCode > 299) throw new TunnelRefused(statusCode);
    progress.tunnelled = true;
    if (!(socket instanceof Socket)) throw new TypeError('the tunnel is no socket');
    const client = new Client(target.origin, {
      connect: inside(socket, timeoutMs),
      headersTimeout: timeoutMs,
    });
    try {
      const response = await client.request({
        method: 'GET',
        path: `${target.pathname}${target.search}`,
        headers: { 'user-agent': userAgent },
        signal,
      });
      await response.body.dump({ limit: maxBodyBytes, signal });
      return response.statusCode;
    } finally {
      await client.destroy();
    }
  } finally {
    socket.on('error', () => undefined).destroy();
  }
}

/** TLS inside a tunnel instead of a connection of its own. */
function inside(socket: Socket, timeout: number): buildConnector.connector {
  const connector = buildConnector({ timeout, allowH2: false });
  return (options, callback) => connector({ ...options, httpSocket: socket }, callback);
}

function authorization(credentials: ProbeCredentials | null): Record<string, string> {
  if (credentials === null) return {};
  const pair = Buffer.from(`${credentials.username}:${credentials.password}`);
  return { 'proxy-authorization': `Basic ${pair.toString('base64')}` };
}

function judge(status: number, request: ProbeRequest, target: URL): ProbeOutcome {
  const { ip, port, expectedStatuses } = request;
  const through = `${target.host} through ${ip}:${port}`;
  const expected = expectedStatuses?.includes(status) ?? (status >= 200 && status < 400);
  if (expected) {
    return {
      healthy: true,
      reason: 'ProbeSucceeded',
      message: `${through} answered ${status}`,
      pastProxy: false,
    };
  }
  if (status === 407) {
    const remedy =
      request.credentials === null
        ? 'set spec.auth.secretRef'
        : 'check username and password in the Secret of spec.auth.secretRef';
    return {
      healthy: false,
      reason: 'ProxyAuthenticationRequired',
      message: `the proxy at ${ip}:${port} asks for credentials (407); ${remedy}`,
      pastProxy: false,
    };
  }
  return {
    healthy: false,
    reason: 'UnexpectedStatus',
    message: `${through} answered ${status}, expected ${expectedStatuses?.join(', ') ?? '2xx or 3xx'}`,
    pastProxy: true,
  };
}
