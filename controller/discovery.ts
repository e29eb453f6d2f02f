/** The discovery API (design §9): `GET /v1/proxies` for the clients that use the proxies. */
import { fastify } from 'fastify';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { z } from 'zod';
import type { Proxy } from '../api/proxy.ts';
import type { DeskState } from './desk.ts';
import type { EndpointQuery } from './endpoints.ts';
import { endpointLines, endpointsOf } from './endpoints.ts';
import { parseSelector, SelectorInvalid } from './selector.ts';

/** What discovery reads; the Proxy cache has it. */
export interface ProxyView {
  list(): readonly Proxy[];
  synced(): boolean;
  /** Epoch ms. */
  lastSyncMs(): number | null;
}

const querySchema = z.strictObject({
  ready: z.enum(['true', 'false', 'all']).default('true'),
  provider: z.string().min(1).nullable().default(null),
  namespace: z.string().min(1).nullable().default(null),
  selector: z.string().default(''),
});

/**
 * Answers JSON, or with `Accept: text/plain` one `ip:port` per line. `X-Watch-Age` is the age in seconds of what is shown:
 * while the API server cannot be watched, the last known list is served on and this grows. `X-Temporal` says `up`, `down`
 * or `noWorkers`: in the last two states what is shown may be out of date although the watch is fresh.
 */
export function createDiscovery(
  view: ProxyView,
  temporal: () => DeskState,
  now: () => number = Date.now,
): FastifyInstance {
  const server = fastify();
  server.get('/v1/proxies', async (request, reply) => {
    const syncedMs = view.lastSyncMs();
    if (!view.synced() || syncedMs === null) {
      return await refuse(
        reply.header('retry-after', '1'),
        503,
        'The Proxies have not been read from Kubernetes yet.',
      );
    }
    const query = parseQuery(request.query);
    if (typeof query === 'string') return await refuse(reply, 400, query);
    const endpoints = endpointsOf(view.list(), query);
    const ageSeconds = Math.max(0, Math.round((now() - syncedMs) / 1_000));
    void reply.header('x-watch-age', String(ageSeconds)).header('cache-control', 'no-store');
    void reply.header('vary', 'accept').header('x-temporal', temporal());
    return prefersText(request.headers.accept)
      ? await reply.type('text/plain; charset=utf-8').send(endpointLines(endpoints))
      : await reply.send({ proxies: endpoints });
  });
  return server;
}

async function refuse(reply: FastifyReply, status: number, error: string): Promise<FastifyReply> {
  return await reply.code(status).send({ error });
}

/** The query, or what is wrong with it. */
function parseQuery(raw: unknown): EndpointQuery | string {
  const parsed = querySchema.safeParse(raw);
  if (!parsed.success) {
    return parsed.error.issues
      .map(({ path, message }) => (path.length === 0 ? message : `${path.join('.')}: ${message}`))
      .join('; ');
  }
  try {
    return { ...parsed.data, selector: parseSelector(parsed.data.selector) };
  } catch (error) {
    if (error instanceof SelectorInvalid) return error.message;
    throw error;
  }
}

/** Text only where it is asked for by name and not ranked below JSON; the star that every client sends means JSON. */
function prefersText(accept = ''): boolean {
  const ranks = new Map<string, number>();
  for (const part of accept.split(',')) {
    const [type = '', ...parameters] = part.split(';').map((text) => text.trim());
    const rank = parameters.find((text) => text.startsWith('q='))?.slice(2);
    ranks.set(type.toLowerCase(), rank === undefined ? 1 : Number(rank));
  }
  const text = ranks.get('text/plain') ?? 0;
  return text > 0 && text >= (ranks.get('application/json') ?? 0);
}
