/**
 * A small Kubernetes API over plain HTTP: Proxies with list, watch, merge patch and finalizers, Secrets and Events. It
 * keeps the rules the operator leans on (resourceVersion and UID preconditions, deletion by finalizer) and can be made
 * to misbehave the way real ones do. Nothing of the operator is imported.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { KubeConfig } from '@kubernetes/client-node';
import { asJson, mergePatch, type Json } from './mergePatch.ts';

export interface FakeMetadata extends Json {
  name: string;
  namespace: string;
  uid: string;
  resourceVersion: string;
  generation: number;
  finalizers: string[];
  deletionTimestamp?: string;
}
export interface FakeObject extends Json {
  metadata: FakeMetadata;
  spec: Json;
  status?: Json;
}
interface Change {
  version: number;
  line: string;
}
export interface SeenRequest {
  method: string;
  path: string;
  watch: boolean;
  atMs: number;
}

const proxiesPath = '/apis/egress-proxies.io/v1alpha1';

export class FakeKubernetes {
  readonly requests: SeenRequest[] = [];
  readonly events = new Map<string, Json>();
  readonly secrets = new Map<string, Record<string, string>>();
  /** UIDs of namespaces, by name. */
  readonly namespaces = new Map<string, string>();
  /** Namespaces that are being deleted: nothing can be made in them. */
  readonly terminating = new Set<string>();
  /** Close every new watch right after its headers. */
  closeWatchesAtOnce = false;
  /** Answer watches of a version older than this with an ERROR event of code 410. */
  oldestVersion = 0;
  /** Answer the next patches with 409, as if somebody else had written in between. */
  conflicts = 0;
  /** Answer every request to a path that ends so with this status. */
  readonly refusals = new Map<string, number>();
  readonly #objects = new Map<string, FakeObject>();
  readonly #changes: Change[] = [];
  readonly #watches = new Set<ServerResponse>();
  readonly #server = createServer((request, response) => {
    this.#answer(request, response).catch((error: unknown) => response.destroy(asError(error)));
  });
  #version = 100;
  #port = 0;

  async start(): Promise<this> {
    await new Promise<void>((resolve) => {
      this.#server.listen(0, '127.0.0.1', resolve);
    });
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    this.#port = address.port;
    return this;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  kubeConfig(): KubeConfig {
    const config = new KubeConfig();
    const server = `http://127.0.0.1:${this.#port}`;
    config.loadFromClusterAndUser({ name: 'fake', server, skipTLSVerify: true }, { name: 'fake' });
    return config;
  }

  object(name: string, namespace = 'egress'): FakeObject | undefined {
    return this.#objects.get(`${namespace}/${name}`);
  }

  /** Creates a Proxy, or replaces the spec of the one with this name (its generation goes up). */
  put(name: string, spec: Json = {}, metadata: Partial<FakeMetadata> = {}): FakeObject {
    const namespace = metadata.namespace ?? 'egress';
    const before = this.#objects.get(`${namespace}/${name}`);
    return this.#store(before === undefined ? 'ADDED' : 'MODIFIED', {
      apiVersion: 'egress-proxies.io/v1alpha1',
      kind: 'Proxy',
      ...before,
      spec,
      metadata: {
        name,
        namespace,
        uid: before?.metadata.uid ?? randomUUID(),
        generation: (before?.metadata.generation ?? 0) + 1,
        finalizers: before?.metadata.finalizers ?? [],
        ...metadata,
        resourceVersion: '',
      },
    });
  }

  setStatus(name: string, status: Json): void {
    const object = this.object(name);
    if (object === undefined) throw new Error(`no Proxy ${name}`);
    this.#store('MODIFIED', { ...object, status });
  }

  /** As kubectl delete: gone at once without finalizers, else marked. */
  remove(name: string): void {
    const object = this.object(name);
    if (object === undefined) throw new Error(`no Proxy ${name}`);
    if (object.metadata.finalizers.length === 0) return void this.#store('DELETED', object);
    const metadata = { ...object.metadata, deletionTimestamp: new Date().toISOString() };
    this.#store('MODIFIED', { ...object, metadata });
  }

  /** Lets all open watches fall silent without closing them, as a dropped NAT entry does. */
  silenceWatches(): void {
    this.#watches.clear();
  }
  breakWatches(): void {
    for (const watch of this.#watches) watch.destroy();
    this.#watches.clear();
  }
  openWatches(): number {
    return this.#watches.size;
  }
  /** Sends a line to all open watches, whatever it says. */
  sendLine(line: Json): void {
    for (const watch of this.#watches) watch.write(`${JSON.stringify(line)}\n`);
  }

  #store(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: FakeObject): FakeObject {
    this.#version++;
    const metadata = { ...object.metadata, resourceVersion: String(this.#version) };
    const stored = { ...object, metadata };
    const released = metadata.deletionTimestamp !== undefined && metadata.finalizers.length === 0;
    const kind = released ? 'DELETED' : type;
    const key = `${metadata.namespace}/${metadata.name}`;
    if (kind === 'DELETED') this.#objects.delete(key);
    else this.#objects.set(key, stored);
    const line = `${JSON.stringify({ type: kind, object: stored })}\n`;
    this.#changes.push({ version: this.#version, line });
    for (const watch of this.#watches) watch.write(line);
    return stored;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://fake');
    const method = request.method ?? 'GET';
    const watch = url.searchParams.has('watch');
    this.requests.push({ method, path: url.pathname, watch, atMs: Date.now() });
    const body = await readBody(request);
    for (const [ending, status] of this.refusals) {
      if (url.pathname.endsWith(ending)) return fail(response, status, 'refused by the test');
    }
    const [, namespace = '', kind = '', name = '', sub] =
      /\/namespaces\/([^/]+)\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(url.pathname) ?? [];
    const uid = this.namespaces.get(url.pathname.replace('/api/v1/namespaces/', ''));
    if (uid !== undefined) return send(response, 200, { kind: 'Namespace', metadata: { uid } });
    if (watch) return this.#watch(url, response);
    if (url.pathname === `${proxiesPath}/proxies`) return this.#list(url, response);
    if (kind === 'secrets') return this.#secret(response, namespace, name);
    if (kind === 'events') return this.#event(response, method, `${namespace}/${name}`, body);
    if (kind !== 'proxies') return fail(response, 404, 'the server could not find the resource');
    const object = this.#objects.get(`${namespace}/${name}`);
    if (object === undefined) return fail(response, 404, `"${name}" not found`, name);
    if (method === 'GET') return send(response, 200, object);
    return this.#patch(response, object, sub === 'status' ? 'status' : 'object', asJson(body));
  }

  #patch(
    response: ServerResponse,
    object: FakeObject,
    target: 'status' | 'object',
    patch: Json,
  ): void {
    const { uid, resourceVersion, finalizers } = asJson(patch['metadata'] ?? {});
    if (this.conflicts > 0) {
      this.conflicts--;
      this.#store('MODIFIED', object);
      return fail(response, 409, 'the object has been modified');
    }
    const { metadata } = object;
    if (uid !== undefined && uid !== metadata.uid) return fail(response, 409, 'UID differs');
    if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
      return fail(response, 409, 'the object has been modified');
    }
    if (target === 'status') {
      const status = mergePatch(object.status ?? {}, patch['status']);
      return send(response, 200, this.#store('MODIFIED', { ...object, status: asJson(status) }));
    }
    const names = Array.isArray(finalizers) ? finalizers.map(String) : metadata.finalizers;
    const changed = { ...object, metadata: { ...metadata, finalizers: names } };
    return send(response, 200, this.#store('MODIFIED', changed));
  }

  #list(url: URL, response: ServerResponse): void {
    const limit = Number(url.searchParams.get('limit') ?? '500');
    const from = Number(url.searchParams.get('continue') ?? '0');
    const all = [...this.#objects.values()];
    const next = from + limit < all.length ? String(from + limit) : '';
    const metadata = { resourceVersion: String(this.#version), continue: next };
    send(response, 200, { kind: 'ProxyList', metadata, items: all.slice(from, from + limit) });
  }

  #watch(url: URL, response: ServerResponse): void {
    const since = Number(url.searchParams.get('resourceVersion'));
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    if (since < this.oldestVersion) {
      const object = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old version' };
      response.end(`${JSON.stringify({ type: 'ERROR', object })}\n`);
      return;
    }
    if (this.closeWatchesAtOnce) return void response.end();
    for (const { version, line } of this.#changes) if (version > since) response.write(line);
    this.#watches.add(response);
    response.on('close', () => this.#watches.delete(response));
  }

  #secret(response: ServerResponse, namespace: string, name: string): void {
    const values = this.secrets.get(`${namespace}/${name}`);
    if (values === undefined) return fail(response, 404, `secrets "${name}" not found`, name);
    const data = Object.entries(values).map(([key, value]) => [
      key,
      Buffer.from(value).toString('base64'),
    ]);
    send(response, 200, { kind: 'Secret', data: Object.fromEntries(data) });
  }

  #event(response: ServerResponse, method: string, path: string, body: unknown): void {
    if (method === 'POST') {
      const { name, namespace } = asJson(asJson(body)['metadata']);
      if (this.terminating.has(String(namespace))) return refuseToMake(response, String(namespace));
      const key = `${path}${String(name)}`;
      if (this.events.has(key)) return fail(response, 409, 'already exists', String(name));
      this.events.set(key, asJson(body));
      return send(response, 201, body);
    }
    const event = this.events.get(path);
    if (event === undefined) return fail(response, 404, 'not found', path);
    if (method === 'PATCH') this.events.set(path, asJson(mergePatch(event, body)));
    return send(response, 200, this.events.get(path));
  }
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text === '' ? {} : JSON.parse(text);
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function fail(response: ServerResponse, status: number, message: string, name?: string): void {
  send(response, status, { kind: 'Status', code: status, message, details: { name } });
}

/** As kube-apiserver 1.35 answers. */
function refuseToMake(response: ServerResponse, namespace: string): void {
  const message = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const causes = [{ reason: 'NamespaceTerminating', field: 'metadata.namespace' }];
  send(response, 403, {
    kind: 'Status',
    code: 403,
    message,
    reason: 'Forbidden',
    details: { causes },
  });
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
