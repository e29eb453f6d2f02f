/** `make proxmox-token-secret`: makes or updates the Secret with the API token and the CA of Proxmox VE. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { lastLines, runCommand } from '../dev/command.ts';
import { printLine, runProgram, UserError } from '../dev/program.ts';
import { problemsOf } from './credentialFiles.ts';

const namespace = 'egress-proxies-operator-system';
const secretName = 'proxmox-token';
const fieldManager = '--field-manager=proxmox-token-secret';

const command = new Command('make proxmox-token-secret').description(
  'Checks the files in PROXMOX_TOKEN_FILE and PROXMOX_CA_FILE, and puts them into the Secret of the cluster.',
);

runProgram(command, async (signal) => {
  const config = join(homedir(), '.config');
  const tokenFile = process.env['PROXMOX_TOKEN_FILE'] ?? join(config, 'proxmox-token');
  const caFile = process.env['PROXMOX_CA_FILE'] ?? join(config, 'proxmox-ca.pem');
  const problems = await problemsOf({ tokenFile, caFile });
  if (problems.length > 0) {
    throw new UserError(`No Secret was made:\n${problems.map((one) => `  ${one}`).join('\n')}`);
  }
  const kubectl = async (args: string[], input = ''): Promise<string> => {
    const { code, stdout, stderr } = await runCommand('kubectl', args, { signal, input });
    if (code === 0) return stdout;
    throw new UserError(`kubectl ${args.slice(0, 3).join(' ')} failed: ${lastLines(stderr, 5)}`);
  };
  // Paths only: the token itself never stands on a command line.
  const sources = [`--from-file=token=${tokenFile}`, `--from-file=ca.pem=${caFile}`];
  const create = ['create', 'secret', 'generic', secretName, `--namespace=${namespace}`];
  const manifest = await kubectl([...create, ...sources, '--dry-run=client', '--output=yaml']);
  // Server-side: a client-side apply would write a second copy of the token into an annotation.
  const apply = ['apply', '--server-side', '--force-conflicts', fieldManager, '--filename=-'];
  printLine((await kubectl(apply, manifest)).trim());
  return 0;
});
