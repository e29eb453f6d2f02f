/**
 * First container of docker-compose.yml: makes the keys, kubeconfigs, certificates, token and the password of PostgreSQL
 * that the others share, in the volume given as its argument. What a volume has already is left as it is.
 */
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { writeKubernetesFiles } from '../dev/kubernetesFiles.ts';
import { printLine, runProgram } from '../dev/program.ts';
import { initSimulator, providersConfigText } from '../dev/simulator.ts';

/** User of the operator's image. */
const operatorUser = 10_001;
/** In the certificate that kube-apiserver makes for itself. */
const apiserverHost = 'kubernetes';
/** Worker and simulator share one network, where the simulated VMs have their addresses. */
const simulatorUrl = 'https://127.0.0.1:8006';

const command = new Command('node deploy/compose/init.ts')
  .description('Makes what the containers of docker-compose.yml share.')
  .argument('<folder>', 'the volume that they share');

runProgram(command, async (signal) => {
  const [folder = ''] = command.args;
  writePassword(join(folder, 'postgres-password'));
  const done = join(folder, 'providers.yaml');
  if (existsSync(done)) {
    printLine(`${folder} is set up already`);
    return 0;
  }
  const kubernetes = join(folder, 'kubernetes');
  mkdirSync(join(kubernetes, 'apiserver'), { recursive: true });
  await writeKubernetesFiles({ folder: kubernetes, apiserverPort: 6443 }, apiserverHost);
  const simulator = await initSimulator(join(folder, 'simulator'), signal);
  writeFileSync(done, providersConfigText(simulatorUrl, simulator));
  for (const entry of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    chownSync(join(folder, entry), operatorUser, operatorUser);
  }
  printLine(`${folder} is set up`);
  return 0;
});

/**
 * On its own, so that a volume of the profile `dev` serves for `postgres` too. Readable by all who mount the volume: the
 * images of Temporal have a user of their own, and the server does not start as one that its image does not know.
 */
function writePassword(file: string): void {
  if (existsSync(file)) return;
  writeFileSync(file, randomBytes(24).toString('hex'), { mode: 0o644 });
}
