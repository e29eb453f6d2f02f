/** An OpenTelemetry collector inside the test: it takes what the programs export over OTLP and HTTP, and shows it as spans. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { z } from 'zod';
import type { Written } from './canaries.ts';

export interface Collector {
  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  url: string;
  /** Every body, as it came. */
  received(): Written;
  /** What the bodies hold. Throws when one is not what OTLP says. */
  spans(): Span[];
  close(): void;
}

export interface Span {
  /** `service.name` of the process. */
  service: string;
  name: string;
  traceId: string;
  spanId: string;
  /** `null`: a root. */
  parentId: string | null;
  /** Those that are texts or numbers. */
  attributes: Record<string, string>;
}

const attributesSchema = z
  .array(
    z.object({
      key: z.string(),
      value: z.object({
        stringValue: z.string().optional(),
        intValue: z.union([z.number(), z.string()]).optional(),
      }),
    }),
  )
  .transform((pairs) =>
    Object.fromEntries(
      pairs.map(({ key, value }) => [key, String(value.stringValue ?? value.intValue ?? '')]),
    ),
  );

const bodySchema = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: attributesSchema }),
      scopeSpans: z.array(
        z.object({
          spans: z.array(
            z.object({
              name: z.string(),
              traceId: z.string(),
              spanId: z.string(),
              parentSpanId: z.string().optional(),
              attributes: attributesSchema,
            }),
          ),
        }),
      ),
    }),
  ),
});

/** Receives until closed. */
export async function startCollector(): Promise<Collector> {
  const bodies: string[] = [];
  const server = createServer((incoming, response) => {
    let body = '';
    incoming.setEncoding('utf8').on('data', (part: string) => (body += part));
    incoming.on('end', () => {
      bodies.push(body);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the collector has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    received: () => ({ place: 'spans', text: bodies.join('\n') }),
    spans: () => bodies.flatMap(spansIn),
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function spansIn(body: string): Span[] {
  const { resourceSpans } = bodySchema.parse(JSON.parse(body));
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ name, traceId, spanId, parentSpanId, attributes }) => ({
        service: resource.attributes['service.name'] ?? '',
        name,
        traceId,
        spanId,
        parentId: parentSpanId === undefined || parentSpanId === '' ? null : parentSpanId,
        attributes,
      })),
    ),
  );
}
