import { createServer } from 'node:http';

/** A page to request through proxies: the local stack never needs the internet. */
export interface PageServer {
  /** A page with a sentence that only this server knows. */
  pageUrl: string;
  /** Answers 204 with no body: what Proxies are probed with. */
  probeUrl: string;
  sentence: string;
  close(): void;
}

/** Starts it on that port of 127.0.0.1, in this process. */
export function startPageServer(port: number): Promise<PageServer> {
  const sentence = `This page was served on port ${port}.`;
  const server = createServer((request, response) => {
    if (request.url === '/generate_204') return response.writeHead(204).end();
    response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' });
    return response.end(`${sentence}\n`);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host: '127.0.0.1' }, () =>
      resolve({
        pageUrl: `http://127.0.0.1:${port}/`,
        probeUrl: `http://127.0.0.1:${port}/generate_204`,
        sentence,
        close: () => {
          server.close();
          server.closeAllConnections();
        },
      }),
    );
  });
}
