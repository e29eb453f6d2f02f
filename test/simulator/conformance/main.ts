import { Command } from 'commander';
import { certificatesInMemory } from '../certificates.ts';
import { runMain, StartError } from '../program.ts';
import { runConformance } from './run.ts';

interface Flags {
  listDiffer: boolean;
  only?: string;
}

/** `npm run conformance -- <folder> [--list-differ] [--only <text>]`. */
async function main(): Promise<void> {
  const program = new Command('npm run conformance --')
    .description('Replays captured exchanges with a Proxmox VE against the simulator.')
    .argument('[folder]', 'of the captures', 'testdata/pve/9.2')
    .option('--list-differ', 'say what differs, and how', false)
    .option('--only <text>', 'the same, for captures with that text in their names')
    .parse();
  const { listDiffer, only } = program.opts<Flags>();
  const [folder = ''] = program.processedArgs.map(String);
  const verdicts = await runConformance(folder, await certificatesInMemory());
  if (verdicts.length === 0) throw new StartError(`There is no capture in ${folder}.`);
  const shown = verdicts.filter(({ name }) => only === undefined || name.includes(only));
  if (shown.length === 0)
    throw new StartError(`No capture in ${folder} has «${only}» in its name.`);
  if (listDiffer || only !== undefined) {
    for (const verdict of shown) {
      if (verdict.verdict !== 'differ') continue;
      process.stdout.write(`${verdict.name}\n`);
      for (const line of verdict.differences.slice(0, 8)) process.stdout.write(`    ${line}\n`);
    }
  }
  const exempt = verdicts.filter((verdict) => verdict.verdict === 'exempt');
  for (const verdict of exempt) process.stdout.write(`exempt ${verdict.name}: ${verdict.reason}\n`);
  const count = (kind: string): number => verdicts.filter(({ verdict }) => verdict === kind).length;
  process.stdout.write(
    `${count('reproduced')} reproduced, ${count('differ')} differ, ${count('exempt')} exempt` +
      ' (reasons listed)\n',
  );
}

runMain(main);
