/**
 * Plain requests to the Kubernetes API. client-node supplies the configuration (kubeconfig, in-cluster, token files,
 * exec plugins) and nothing else: its own calls open a new socket each time and have no time limit, its informer stops
 * for good after the first network error, and its models drop keys they do not know.
 */
import { createHash } from 'node:crypto';
import type { RequestOptions } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node';
import { Agent, ProxyAgent, request } from 'undici';
import type { buildConnector, Dispatcher } from 'undici';
import { kubernetesBoundMs } from '../../workflows/contract/budgets.ts';

export interface KubernetesRequest {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Absolute path, segments encoded, for example `/api/v1/namespaces/egress/secrets/squid`. */
  path: string;
  query?: Readonly<Record<string, string>>;
  /** Sent as JSON; a PATCH is a JSON merge patch (RFC 7386). */
  body?: unknown;
}

/** An answer with any status; the caller decides what it means. */
export interface KubernetesAnswer {
  status: number;
  /** Parsed JSON; text when it was none. */
  body: unknown;
}

/** A watch: status and, while it lasts, chunks of JSON lines. */
export interface KubernetesStream {
  status: number;
  chunks: AsyncIterable<Uint8Array>;
}

/** What records and cache need of Kubernetes; network failures are thrown as they come (see failure.ts). */
export interface KubernetesClient {
  /** One request with one answer, bounded by 10 s, response included. */
  send(request: KubernetesRequest): Promise<KubernetesAnswer>;
  /** A GET without time limit; ends when the server closes it or the signal aborts. */
  stream(
    path: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<KubernetesStream>;
  close(): Promise<void>;
}

/**
 * Configuration as kubectl finds it: `KUBECONFIG`, `~/.kube/config`, in-cluster.
 * @throws Error with one sentence when there is none or it cannot be read.
 */
export function loadKubeConfig(): KubeConfig {
  const config = new KubeConfig();
  try {
    config.loadFromDefault();
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new Error(`The kubeconfig cannot be read: ${text}.`, { cause: error });
  }
  // What client-node falls back to when it finds nothing.
  if (config.getCurrentCluster()?.server === 'http://localhost:8080') {
    throw new Error(
      'There is no Kubernetes configuration: set KUBECONFIG to a kubeconfig, or run inside a cluster.',
    );
  }
  return config;
}

/** A client for the current context of a configuration. Connects at the first request, not here. */
export function createKubernetesClient(
  config: KubeConfig,
  boundMs: number = kubernetesBoundMs,
): KubernetesClient {
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw new Error('The kubeconfig names no current cluster.');
  const server = cluster.server.replace(/\/+$/, '');
  const sockets = new SocketPool(config);

  return {
    async send({ method, path, query, body }) {
      const { dispatcher, headers } = await sockets.prepare();
      if (body !== undefined) {
        headers['content-type'] =
          method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
      }
      const response = await request(server + path, {
        method,
        query: query ?? {},
        headers,
        body: body === undefined ? null : JSON.stringify(body),
        dispatcher,
        signal: AbortSignal.timeout(boundMs),
      });
      return { status: response.statusCode, body: parseBody(await response.body.text()) };
    },

    async stream(path, query, signal) {
      const { dispatcher, headers } = await sockets.prepare();
      const response = await request(server + path, {
        query,
        headers,
        dispatcher,
        signal,
        headersTimeout: boundMs,
        bodyTimeout: 0,
      });
      return { status: response.statusCode, chunks: response.body };
    },

    close: () => sockets.close(),
  };
}

function parseBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** One undici dispatcher per set of credentials: kept alive between requests, replaced when a certificate rotates. */
class SocketPool {
  readonly #config: KubeConfig;
  #key = '';
  #dispatcher: Dispatcher | undefined;

  constructor(config: KubeConfig) {
    this.#config = config;
  }

  /** Reads token and certificates afresh (client-node re-reads a token file once a minute). */
  async prepare(): Promise<{ dispatcher: Dispatcher; headers: Record<string, string> }> {
    const options: RequestOptions = {};
    await this.#config.applyToHTTPSOptions(options);
    const headers: Record<string, string> = { accept: 'application/json' };
    for (const [name, value] of Object.entries(options.headers ?? {})) {
      if (typeof value === 'string') headers[name] = value;
    }
    if (typeof options.auth === 'string') {
      headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`;
    }
    return { dispatcher: this.#dispatcherFor(options), headers };
  }

  async close(): Promise<void> {
    // destroy, not close: an open watch would keep close() waiting for minutes.
    await this.#dispatcher?.destroy();
  }

  #dispatcherFor(options: RequestOptions): Dispatcher {
    const key = credentialsKey(options);
    if (this.#dispatcher !== undefined && this.#key === key) return this.#dispatcher;
    // Requests under way on the old sockets finish; nothing new goes there.
    void this.#dispatcher?.close();
    this.#dispatcher = createDispatcher(this.#config, options);
    this.#key = key;
    return this.#dispatcher;
  }
}

function credentialsKey({ ca, cert, key, servername, rejectUnauthorized }: RequestOptions): string {
  const hash = createHash('sha256');
  for (const part of [ca, cert, key]) {
    hash.update(typeof part === 'string' || Buffer.isBuffer(part) ? part : '').update('\0');
  }
  return hash.update(`${servername ?? ''}\0${String(rejectUnauthorized)}`).digest('hex');
}

function createDispatcher(config: KubeConfig, options: RequestOptions): Dispatcher {
  const tls = tlsOptions(options);
  const proxyUrl = config.getCurrentCluster()?.proxyUrl;
  // keepAliveInitialDelay: load balancers drop a silent connection after 60 s, undici's default for the first keep-alive.
  const connect = { ...tls, keepAlive: true, keepAliveInitialDelay: 30_000 };
  if (proxyUrl === undefined) return new Agent({ connect, allowH2: false });
  return new ProxyAgent({ uri: proxyUrl, requestTls: tls, allowH2: false });
}

function tlsOptions(options: RequestOptions): buildConnector.BuildOptions {
  const { ca, cert, key, passphrase, rejectUnauthorized, servername } = options;
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(passphrase === undefined ? {} : { passphrase }),
    ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
    ...(servername === undefined ? {} : { servername }),
  };
}
