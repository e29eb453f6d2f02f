/** Process beside `bench:probes`: a thousand proxies behind one port, told apart by their address in 127.0.0.0/8. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { kindOf, numberOf, type Arrival } from './probeKinds.ts';

/** What a slow one takes, well within the time limit of a probe. */
const slowMs = 2_000;
let arrivals: Arrival[] = [];

const server = createServer((request: IncomingMessage, response: ServerResponse) => {
  const ip = request.socket.localAddress ?? '';
  arrivals.push({ ip, atMs: Date.now() });
  const kind = kindOf(numberOf(ip));
  if (kind === 'hangs') return;
  const answer = (): void => void response.writeHead(204).end();
  if (kind === 'slow') setTimeout(answer, slowMs);
  else answer();
});

server.listen(0, '0.0.0.0', 4_096, () => {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the peers have no port');
  process.send?.({ port: address.port });
});

// Any message asks for what arrived since the last one.
process.on('message', () => {
  process.send?.({ arrivals });
  arrivals = [];
});
// The bench is gone, however it ended.
process.on('disconnect', () => process.exit());
