import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { stringify } from 'yaml';
import { lastLines, runCommand } from './command.ts';
import { UserError } from './program.ts';
import { checkout } from './stackFolder.ts';

/** What `simulate --init` made for one simulator. */
export interface SimulatorFiles {
  folder: string;
  tokenFile: string;
  caFile: string;
  fixture: string;
}

/** Makes certificates and a token for a simulator in `folder`. Throws UserError with what it said. */
export async function initSimulator(folder: string, signal: AbortSignal): Promise<SimulatorFiles> {
  const program = join(checkout, 'test/simulator/main.ts');
  const made = await runCommand(process.execPath, [program, `--init=${folder}`], { signal });
  if (made.code !== 0)
    throw new UserError(`The simulator cannot be set up: ${lastLines(made.stderr, 3)}`);
  return {
    folder,
    tokenFile: join(folder, 'token'),
    caFile: join(folder, 'ca.pem'),
    fixture: join(checkout, 'testdata/pve/9.2/fixture.yaml'),
  };
}

/** The providers config of the local stack: one provider, the simulated cluster. */
export function providersConfigText(url: string, files: SimulatorFiles): string {
  return stringify({
    providers: [
      {
        name: 'proxmox-local',
        type: 'proxmox',
        proxmox: {
          url,
          tokenFile: files.tokenFile,
          caFile: files.caFile,
          nodes: ['pve1'],
          isoStorage: 'proxy-seeds',
          templates: { 'debian-13': { vmid: 9001 } },
          machineTypes: { small: { cores: 1, memoryMiB: 1024 } },
          // Simulated guests live in the loopback range, which is refused unless it is named.
          address: { cidrs: ['127.64.0.0/10'] },
        },
      },
    ],
  });
}

/** A simulator as an administrator of the simulated cluster, and of the simulator itself, sees it. */
export interface SimulatorAccess {
  /** Answer of the simulated API, its `data`, to a GET with the operator's token. */
  get(path: string): Promise<unknown>;
}

export function simulatorAccess(url: string, files: SimulatorFiles): SimulatorAccess {
  return {
    get: async (path) => {
      const dispatcher = new Agent({ connect: { ca: readFileSync(files.caFile, 'utf8') } });
      const token = readFileSync(files.tokenFile, 'utf8').trim();
      const answer = await request(`${url}/api2/json${path}`, {
        dispatcher,
        headers: { authorization: `PVEAPIToken=${token}` },
      });
      const body: unknown = await answer.body.json();
      await dispatcher.close();
      return body;
    },
  };
}
