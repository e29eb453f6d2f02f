import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import type { Dispatcher } from 'undici';
import { stringify } from 'yaml';
import { lastLines, runCommand } from './command.ts';
import { UserError } from './program.ts';
import { checkout } from './stackFolder.ts';

/** What `simulate --init` made for one simulator. */
export interface SimulatorFiles {
  folder: string;
  tokenFile: string;
  caFile: string;
  /** YAML with the state the cluster starts in. */
  fixture: string;
}

/** Makes certificates and a token for a simulator in `folder`. Throws UserError with what it said. */
export async function initSimulator(folder: string, signal: AbortSignal): Promise<SimulatorFiles> {
  const program = join(checkout, 'test/simulator/main.ts');
  const fixture = join(checkout, 'test/simulator/fixtures/local.yaml');
  const args = [program, `--init=${folder}`, `--fixture=${fixture}`];
  const made = await runCommand(process.execPath, args, { signal });
  if (made.code !== 0)
    throw new UserError(`The simulator cannot be set up: ${lastLines(made.stderr, 3)}`);
  return { folder, fixture, tokenFile: join(folder, 'token'), caFile: join(folder, 'ca.pem') };
}

/** The providers config of the local stack: one provider, the simulated cluster of the fixture, named as the samples name it. */
export function providersConfigText(url: string, files: SimulatorFiles): string {
  const proxmox = {
    url,
    tokenFile: files.tokenFile,
    caFile: files.caFile,
    nodes: ['pv1-1', 'pv1-2'],
    isoStorage: 'proxy-seeds',
    templates: { 'debian-13': { vmids: { 'pv1-1': 9001, 'pv1-2': 9002 } } },
    machineTypes: {
      small: { cores: 1, memoryMiB: 1024 },
      medium: { cores: 2, memoryMiB: 2048, diskGiB: 10 },
    },
    // Simulated guests live in the loopback range, which is refused unless it is named.
    address: { cidrs: ['127.64.0.0/10'] },
  };
  return stringify({ providers: [{ name: 'proxmox-local', type: 'proxmox', proxmox }] });
}

/** A simulated cluster from outside: as its API shows it, and as the simulator's own port does. */
export interface SimulatorAccess {
  /** Answer of the simulated API to a GET with the operator's token; `path` is below `/api2/json`. */
  get(path: string): Promise<unknown>;
  /** Answer of the admin port (test/simulator/README.md): requests seen, VMs, faults. Throws with what it said. */
  admin(method: 'GET' | 'POST' | 'DELETE', path: string, body?: object): Promise<unknown>;
}

/** Reads token and CA anew for every call: a test may replace them. */
export function simulatorAccess(
  apiUrl: string,
  adminUrl: string,
  files: SimulatorFiles,
): SimulatorAccess {
  return {
    get: async (path) => {
      const dispatcher = new Agent({ connect: { ca: readFileSync(files.caFile, 'utf8') } });
      const token = readFileSync(files.tokenFile, 'utf8').trim();
      try {
        const authorization = `PVEAPIToken=${token}`;
        return await answerOf(`${apiUrl}/api2/json${path}`, {
          dispatcher,
          headers: { authorization },
        });
      } finally {
        await dispatcher.close();
      }
    },
    admin: (method, path, body) =>
      answerOf(`${adminUrl}${path}`, {
        method,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
  };
}

async function answerOf(
  url: string,
  options: { dispatcher?: Dispatcher; method?: string; headers?: object; body?: string },
): Promise<unknown> {
  const { statusCode, statusText, body } = await request(url, {
    ...(options.dispatcher === undefined ? {} : { dispatcher: options.dispatcher }),
    method: options.method ?? 'GET',
    headers: { ...options.headers },
    body: options.body ?? null,
  });
  const text = await body.text();
  if (statusCode >= 400)
    throw new Error(`${url} answered ${statusCode} ${statusText}: ${text.trim()}`);
  return JSON.parse(text);
}
