/** The real client over TLS to a server of the test, with short clocks. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CallContext, ProxmoxApi } from '../../activities/proxmox/api.ts';
import { createProxmoxApi } from '../../activities/proxmox/client.ts';
import { createProxmoxHttp, defaultLimits } from '../../activities/proxmox/http.ts';
import type { ConnectionSettings, HttpLimits, ProxmoxHttp } from '../../activities/proxmox/http.ts';
import { ProviderError } from '../../activities/providerError.ts';
import { answerData, startHttpsPeer } from './httpsPeer.ts';
import type { Answer, HttpsPeer } from './httpsPeer.ts';
import { makeCa } from './tls.ts';
import type { TestCa } from './tls.ts';

export const tokenLine = 'proxy-operator@pve!operator=00000000-0000-4000-8000-00000000cafe';
export const upid = 'UPID:pve1:00000DDA:0002934D:6B0C29C7:qmstart:110:proxy-operator@pve!operator:';

/** A client, the server it talks to, and the files it reads. */
export interface Rig {
  peer: HttpsPeer;
  ca: TestCa;
  tokenFile: string;
  http: ProxmoxHttp;
  settings: ConnectionSettings;
  /** The API bound to one attempt; unlimited unless told otherwise. */
  api: (call?: Partial<CallContext>) => ProxmoxApi;
  /** A second client with other settings, closed with the rig. */
  another: (settings: Partial<ConnectionSettings>, limits?: Partial<HttpLimits>) => ProxmoxHttp;
  close(): Promise<void>;
}

/** Starts server and client. The default answer is a UPID to everything. */
export async function startRig(
  options: {
    answer?: Answer;
    limits?: Partial<HttpLimits>;
    requestBoundMs?: number;
    now?: () => number;
    alpn?: string[];
  } = {},
): Promise<Rig> {
  const ca = await makeCa();
  const certificate = await ca.issue(['127.0.0.1', 'localhost']);
  const alpn = options.alpn === undefined ? {} : { ALPNProtocols: options.alpn };
  const answer: Answer = options.answer ?? ((_request, response) => answerData(response, upid));
  const peer = await startHttpsPeer({ ...certificate, ...alpn }, answer);
  const tokenFile = join(ca.dir, 'token');
  writeFileSync(tokenFile, `${tokenLine}\n`);
  const settings: ConnectionSettings = {
    provider: 'lab',
    url: peer.url,
    tokenFile,
    caFile: ca.caFile,
    insecureSkipTLSVerify: false,
    requestBoundMs: options.requestBoundMs ?? 5_000,
  };
  const clients: ProxmoxHttp[] = [];
  const another: Rig['another'] = (changed, limits = {}) => {
    const all = { ...defaultLimits, ...options.limits, ...limits };
    const http = createProxmoxHttp({ ...settings, ...changed }, all, options.now);
    clients.push(http);
    return http;
  };
  const http = another({});
  return {
    peer,
    ca,
    tokenFile,
    http,
    settings,
    api: (call = {}) => createProxmoxApi('lab', http, anAttempt(call)),
    another,
    close: async () => {
      await peer.close();
      await Promise.all(clients.map((client) => client.close()));
      rmSync(ca.dir, { recursive: true });
    },
  };
}

/** An attempt without an end. */
export function anAttempt(call: Partial<CallContext> = {}): CallContext {
  return { signal: new AbortController().signal, writesUntilMs: Number.MAX_SAFE_INTEGER, ...call };
}

/** The `ProviderError` a call ends with; fails when it succeeds or ends otherwise. */
export async function failureOf(call: Promise<unknown>): Promise<ProviderError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof ProviderError) return error;
    throw error;
  }
  throw new Error('the call succeeded');
}

/** Class, reason and scope in one line. */
export function asWords({ errorClass, facts }: ProviderError): string {
  return `${errorClass} ${facts.reason} ${facts.scope}`;
}

/** Runs a body with a rig and always takes it down. */
export async function withRig(
  options: Parameters<typeof startRig>[0],
  body: (rig: Rig) => Promise<void>,
): Promise<void> {
  const rig = await startRig(options);
  try {
    await body(rig);
  } finally {
    await rig.close();
  }
}
