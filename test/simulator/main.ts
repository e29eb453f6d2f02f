import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { makeCertificates } from './certificates.ts';
import { loadFixture } from './fixture.ts';
import { runMain, StartError } from './program.ts';
import { startSimulator } from './simulator.ts';

const DEFAULT_FIXTURE = new URL('fixtures/local.yaml', import.meta.url).pathname;

interface Flags {
  fixture: string;
  port: number;
  adminPort: number;
  host: string;
  tlsDir?: string;
  timeScale: number;
  proxyNetwork: boolean;
  init?: string;
}

/** `npm run simulate`: a simulated Proxmox VE cluster until SIGTERM. */
async function main(): Promise<void> {
  const program = new Command('simulate')
    .description('Imitates the API of a Proxmox VE 9.2 cluster.')
    .option('--fixture <yaml>', 'state of the cluster at the start', DEFAULT_FIXTURE)
    .option('--port <number>', 'HTTPS port of the API, 0 = a free one', port, 8006)
    .option(
      '--admin-port <number>',
      'HTTP port for faults and inspection, 0 = a free one',
      port,
      8007,
    )
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option(
      '--tls-dir <dir>',
      'directory with server.pem, server.key and ca.pem; made when missing',
    )
    .option('--time-scale <x>', 'real seconds per cluster second', factor, 1)
    .option('--no-proxy-network', 'guests get no address to listen on')
    .option('--init <dir>', 'only write certificates and a token file for the fixture into <dir>');
  const flags = program.parse().opts<Flags>();
  if (flags.init !== undefined) {
    await initialise(flags.init, flags.fixture, flags.host);
    return;
  }
  const tls = await makeCertificates(flags.tlsDir ?? '.local/simulator', [
    flags.host,
    'localhost',
    '127.0.0.1',
  ]);
  const simulator = await startSimulator({
    fixture: flags.fixture,
    port: flags.port,
    adminPort: flags.adminPort,
    host: flags.host,
    tls,
    timeScale: flags.timeScale,
    proxyNetwork: flags.proxyNetwork,
  });
  const guests = simulator.core.network?.prefix;
  process.stdout.write(
    `Simulated Proxmox VE ready: API ${simulator.url}, admin ${simulator.adminUrl}, CA ${tls.caFile}` +
      `${guests === undefined ? '' : `, guests in ${guests}.0.0/16`}\n`,
  );
  const stop = (): void => {
    void simulator.close().then(() => {
      process.exitCode = 0;
    });
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
}

/** Writes certificates and `token` (the one-line token file of the first token, mode 0600). */
async function initialise(dir: string, fixturePath: string, host: string): Promise<void> {
  mkdirSync(dir, { recursive: true });
  await makeCertificates(dir, [host, 'localhost', '127.0.0.1']);
  const user = loadFixture(fixturePath).users.find((entry) => entry.tokens.length > 0);
  const token = user?.tokens[0];
  if (user === undefined || token === undefined)
    throw new StartError(`${fixturePath} has no token`);
  writeFileSync(join(dir, 'token'), `${user.id}!${token.id}=${token.secret}\n`, { mode: 0o600 });
  process.stdout.write(`${dir}: ca.pem, server.pem, server.key, token (${user.id}!${token.id})\n`);
}

function port(text: string): number {
  if (/^\d+$/.test(text) && Number(text) < 65_536) return Number(text);
  throw new InvalidArgumentError('It must be a port, or 0.');
}

function factor(text: string): number {
  if (Number.isFinite(Number(text)) && Number(text) > 0) return Number(text);
  throw new InvalidArgumentError('It must be a number above 0.');
}

runMain(main);
