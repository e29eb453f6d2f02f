/** An API server over TLS that misbehaves as a test says, and a Proxy cache on it. */
import { rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { after, afterEach, before, beforeEach } from 'node:test';
import { KubeConfig } from '@kubernetes/client-node';
import { createKubernetesClient } from '../../activities/kubernetes/client.ts';
import type { KubernetesClient } from '../../activities/kubernetes/client.ts';
import { ProxyCache, type CachePace } from '../../activities/kubernetes/proxyCache.ts';
import { eventually } from './eventually.ts';
import { startHttpsPeer, type HttpsPeer, type SeenRequest } from './httpsPeer.ts';
import { recordingLog } from './recordingLog.ts';
import { makeCa, type TestCa } from './tls.ts';

export type Json = Record<string, unknown>;
type Answer = (url: URL, response: ServerResponse) => void;

const boundMs = 300;
const quick: CachePace = {
  pageSize: 2,
  idleMs: 5_000,
  fullListMs: 60_000,
  overdueMs: 0,
  steadyMs: 5_000,
  retryFirstMs: 20,
  retryMaxMs: 160,
};

export class TroubledApi {
  objects: Json[] = [];
  version = 1_000;
  /** Open ones. */
  watches: ServerResponse[] = [];
  /** How a list and a watch are answered; replaced by a test. */
  onList: Answer = (url, response) => this.list(url, response);
  onWatch: Answer = (_url, response) => this.openWatch(response);
  cache: ProxyCache | undefined;
  readonly #log = recordingLog();
  readonly #peer: HttpsPeer;
  readonly #client: KubernetesClient;

  /** `peer` answers nothing yet. */
  private constructor(peer: HttpsPeer, client: KubernetesClient) {
    this.#peer = peer;
    this.#client = client;
    peer.answer = (request, response) => this.#answer(request, response);
  }

  static async start(ca: TestCa): Promise<TroubledApi> {
    const peer = await startHttpsPeer(await ca.issue(['127.0.0.1']), () => undefined);
    const config = new KubeConfig();
    const caData = Buffer.from(ca.caPem).toString('base64');
    const cluster = { name: 'peer', server: peer.url, caData, skipTLSVerify: false };
    config.loadFromClusterAndUser(cluster, { name: 'peer' });
    return new TroubledApi(peer, createKubernetesClient(config, boundMs));
  }

  async stop(): Promise<void> {
    await this.cache?.stop();
    await this.#client.close();
    await this.#peer.close();
  }

  /** Starts the cache, quick unless told otherwise. */
  startCache(pace: Partial<CachePace> = {}): void {
    const { log } = this.#log;
    this.cache = new ProxyCache({ client: this.#client, log, pace: { ...quick, ...pace } });
  }

  /** Stores an object and returns it; `tell` sends what watches deliver. */
  put(name: string, port = 3128): Json {
    this.version += 1;
    const resourceVersion = String(this.version);
    const metadata = { name, namespace: 'egress', uid: name, generation: 1, resourceVersion };
    const object = { metadata, spec: { mode: 'External', address: '192.0.2.7', port } };
    this.forget(name);
    this.objects.push(object);
    return object;
  }
  /** Removes it as if it had never been. */
  forget(name: string): void {
    this.objects = this.objects.filter(({ metadata }) => Object(metadata).name !== name);
  }
  tell(type: string, object: Json): void {
    for (const watch of this.watches) watch.write(`${JSON.stringify({ type, object })}\n`);
  }

  list(url: URL, response: ServerResponse): void {
    const limit = Number(url.searchParams.get('limit') ?? '100000');
    const from = Number(url.searchParams.get('continue') ?? '0');
    const next = from + limit < this.objects.length ? { continue: String(from + limit) } : {};
    const metadata = { resourceVersion: String(this.version), ...next };
    sendJson(response, 200, { metadata, items: this.objects.slice(from, from + limit) });
  }
  openWatch(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    this.watches.push(response);
    response.on('close', () => {
      this.watches = this.watches.filter((watch) => watch !== response);
    });
  }

  /** `name:port` of what the cache holds. */
  seen(): string[] {
    const proxies = this.cache?.list() ?? [];
    return proxies.map(({ metadata, spec }) => `${metadata.name}:${spec.port}`).sort();
  }
  /** Lists that were asked for, without those that only ask for the newest version. */
  lists(): URL[] {
    return this.#urls(false).filter(({ searchParams }) => searchParams.get('limit') !== '1');
  }
  watchesAsked(): URL[] {
    return this.#urls(true);
  }
  /** Everything that was asked for, in order. */
  asked(): URL[] {
    return this.#peer.requests.map(({ url }) => new URL(url, this.#peer.url));
  }
  lines(): Json[] {
    return this.#log.lines;
  }
  warnings(): Json[] {
    return this.#log.lines.filter(({ level }) => Number(level) >= 40);
  }
  async untilWatched(): Promise<void> {
    await eventually(() => this.watches.length === 1);
  }

  #urls(watch: boolean): URL[] {
    return this.asked().filter(({ searchParams }) => searchParams.has('watch') === watch);
  }
  #answer({ url }: SeenRequest, response: ServerResponse): void {
    response.on('error', () => undefined);
    const parsed = new URL(url, this.#peer.url);
    if (parsed.searchParams.has('watch')) this.onWatch(parsed, response);
    else this.onList(parsed, response);
  }
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** Answers with a Status of Kubernetes. */
export function refuse(status: number, reason: string): Answer {
  return (_url, response) =>
    sendJson(response, status, { kind: 'Status', code: status, reason, message: `${reason}!` });
}

/** Each test of the suite gets one of its own, handed over by `use`. */
export function eachWithTroubledApi(use: (api: TroubledApi) => void): void {
  let ca: TestCa;
  let api: TroubledApi;
  before(async () => {
    ca = await makeCa();
  });
  after(() => rmSync(ca.dir, { recursive: true }));
  beforeEach(async () => {
    api = await TroubledApi.start(ca);
    use(api);
  });
  afterEach(() => api.stop());
}
