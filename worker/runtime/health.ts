/** The two small servers of every process: health (`/healthz`, `/readyz`) and metrics (`/metrics`). */
import { fastify } from 'fastify';
import type { FastifyInstance } from 'fastify';
import type { Registry } from 'prom-client';

export interface Listening {
  port: number;
  close(): Promise<void>;
}

export interface ListenAt {
  host: string;
  /** 0 takes a free one. */
  port: number;
}

export interface HealthOptions extends ListenAt {
  /** What the process still lacks before it can serve, one sentence each; empty means ready. */
  notReady: () => readonly string[];
  /** What is so wrong that a restart would help; empty means alive. */
  notAlive?: () => readonly string[];
}

/** Answers 200 `ok`, or 503 with the sentences. */
export async function startHealthServer(options: HealthOptions): Promise<Listening> {
  const server = fastify();
  const routes = {
    '/healthz': options.notAlive ?? (() => []),
    '/readyz': options.notReady,
  };
  for (const [path, problemsOf] of Object.entries(routes)) {
    server.get(path, async (_request, reply) => {
      const problems = problemsOf();
      return await reply
        .code(problems.length === 0 ? 200 : 503)
        .type('text/plain')
        .send(problems.length === 0 ? 'ok\n' : `${problems.join('\n')}\n`);
    });
  }
  return await listen(server, 'health', options);
}

/** Serves a prom-client registry at `/metrics`. */
export async function startMetricsServer(
  registry: Registry,
  options: ListenAt,
): Promise<Listening> {
  const server = fastify();
  server.get('/metrics', async (_request, reply) =>
    reply.type(registry.contentType).send(await registry.metrics()),
  );
  return await listen(server, 'metrics', options);
}

/** Listens and reports the port taken. Throws an Error that names the flag to change when it is occupied. */
export async function listen(
  server: FastifyInstance,
  purpose: 'health' | 'metrics' | 'discovery',
  { host, port }: ListenAt,
): Promise<Listening> {
  try {
    await server.listen({ host, port });
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new Error(
      `The ${purpose} port ${port} cannot be opened: ${text}. Choose another with --${purpose}-port.`,
      {
        cause: error,
      },
    );
  }
  const address = server.server.address();
  return {
    port: address !== null && typeof address === 'object' ? address.port : port,
    close: () => server.close(),
  };
}
