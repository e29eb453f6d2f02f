import http from 'node:http';
import { z } from 'zod';
import {
  heldLock,
  parseFault,
  parseGuestChange,
  parseNodeChange,
  parseStorageChange,
} from './adminBodies.ts';
import { textOf } from './errors.ts';
import { readSeed } from './iso.ts';
import type { Simulator } from './simulator.ts';

type Route = (match: RegExpExecArray, body: unknown) => unknown;

/** The simulator's own port: plain HTTP and JSON on the loopback, for demonstrations and tests. */
export async function startAdminServer(
  simulator: Simulator,
  host: string,
  port: number,
): Promise<{ port: number; close(): Promise<void> }> {
  const routes = adminRoutes(simulator);
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { status, body } = answer(routes, request, Buffer.concat(chunks).toString('utf8'));
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(`${JSON.stringify(body, null, 1)}\n`);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no TCP address');
  return {
    port: address.port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

function answer(
  routes: readonly (readonly [string, RegExp, Route])[],
  request: http.IncomingMessage,
  text: string,
): { status: number; body: unknown } {
  const path = decodeURIComponent((request.url ?? '/').replace(/\?.*$/, ''));
  for (const [method, pattern, route] of routes) {
    const match = method === request.method ? pattern.exec(path) : null;
    if (match === null) continue;
    try {
      return {
        status: 200,
        body: route(match, text === '' ? {} : JSON.parse(text)) ?? { ok: true },
      };
    } catch (error) {
      return { status: 400, body: { error: textOf(error) } };
    }
  }
  return {
    status: 404,
    body: { error: `no ${request.method ?? ''} ${path}`, see: 'test/simulator/README.md' },
  };
}

function adminRoutes(simulator: Simulator): readonly (readonly [string, RegExp, Route])[] {
  const { cluster } = simulator;
  return [
    [
      'GET',
      /^\/$/,
      () => ({
        url: simulator.url,
        network: simulator.core.network?.prefix ?? null,
        timeScale: simulator.core.clock.scale,
      }),
    ],
    ['GET', /^\/requests$/, () => simulator.requests],
    ['DELETE', /^\/requests$/, () => void simulator.requests.splice(0)],
    ['GET', /^\/proxy-requests$/, () => simulator.proxyRequests],
    [
      'GET',
      /^\/vms$/,
      () =>
        simulator.vms().map((vm) => ({
          vmid: vm.vmid,
          node: vm.node,
          type: vm.type,
          running: vm.running !== null,
          qmpstatus: vm.running?.qmpstatus ?? 'stopped',
          startedAt: vm.running?.startedAt ?? null,
          agentUp: vm.running?.agentUp ?? false,
          agentUpAt: vm.running?.agentUpAt ?? null,
          address: vm.running?.address ?? null,
          proxyPort: vm.running?.proxyPort ?? null,
          config: Object.fromEntries(vm.config),
          pending: Object.fromEntries(vm.pending),
        })),
    ],
    [
      'DELETE',
      /^\/vms\/(\d+)$/,
      (match) => {
        simulator.removeVm(Number(match[1]));
      },
    ],
    [
      'POST',
      /^\/vms\/(\d+)\/power-off$/,
      (match) => {
        simulator.powerOffVm(Number(match[1]));
      },
    ],
    [
      'POST',
      /^\/vms\/(\d+)\/guest$/,
      (match, body) => {
        simulator.changeGuest(Number(match[1]), parseGuestChange(body));
      },
    ],
    [
      'POST',
      /^\/vms\/(\d+)\/move$/,
      (match, body) => {
        const { node } = z.object({ node: z.string() }).parse(body);
        simulator.moveVm(Number(match[1]), node);
      },
    ],
    [
      'POST',
      /^\/vms\/(\d+)\/config$/,
      (match, body) => {
        const changes = z.record(z.string(), z.string().nullable()).parse(body);
        simulator.editConfig(Number(match[1]), changes);
      },
    ],
    [
      'GET',
      /^\/isos$/,
      () =>
        simulator.isos().map(({ bytes, ...iso }) => ({
          ...iso,
          userData: bytes === null ? null : (readSeed(bytes)?.userData ?? null),
        })),
    ],
    ['GET', /^\/tasks$/, () => simulator.tasks],
    [
      'POST',
      /^\/tasks\/(.+)\/kill$/,
      (match) => {
        simulator.killTask(match[1] ?? '');
      },
    ],
    [
      'GET',
      /^\/faults$/,
      () => simulator.faults.rules.map((rule) => ({ ...rule, path: rule.path.source })),
    ],
    [
      'POST',
      /^\/faults$/,
      (_match, body) => {
        const { id } = simulator.faults.push(parseFault(body));
        return { id };
      },
    ],
    [
      'POST',
      /^\/faults(?:\/(\d+))?\/go-on$/,
      ([, id]) => {
        simulator.faults.goOn(id === undefined ? undefined : Number(id));
      },
    ],
    [
      'DELETE',
      /^\/faults$/,
      () => {
        simulator.faults.clear();
      },
    ],
    ['GET', /^\/nodes$/, () => [...cluster.nodes.values()]],
    [
      'POST',
      /^\/nodes\/([^/]+)$/,
      (match, body) => {
        simulator.setNode(match[1] ?? '', parseNodeChange(body));
      },
    ],
    [
      'POST',
      /^\/time-scale$/,
      (_match, body) => {
        simulator.setTimeScale(z.strictObject({ scale: z.number().positive() }).parse(body).scale);
      },
    ],
    [
      'POST',
      /^\/storages\/([^/]+)$/,
      (match, body) => {
        simulator.setStorage(match[1] ?? '', parseStorageChange(body));
      },
    ],
    [
      'POST',
      /^\/locks$/,
      (_match, body) => {
        const { name, seconds, node } = heldLock.parse(body);
        simulator.holdLock(name, seconds, node);
      },
    ],
    [
      'POST',
      /^\/worker-cache$/,
      (_match, body) => {
        const { seconds } = z.strictObject({ seconds: z.number().nonnegative() }).parse(body);
        simulator.setWorkerCache(seconds);
      },
    ],
    [
      'POST',
      /^\/tasks\/purge$/,
      () => {
        simulator.purgeTasks();
      },
    ],
    [
      'POST',
      /^\/stats$/,
      () => {
        simulator.refreshStats();
      },
    ],
  ];
}
