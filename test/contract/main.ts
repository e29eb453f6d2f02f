/**
 * `npm run contract [-- --only <kind>] [-- --page <file>]`: the contract with Proxmox VE, statement by statement. `--only`
 * takes proven, changed or nonGoal; `--page` takes the specification itself and lists its lines that no entry speaks of.
 */
import { readFileSync } from 'node:fs';
import { Command, Option } from 'commander';
import { errorCode, printLine, runProgram, UserError } from '../../deploy/dev/program.ts';
import { counts, table, uncovered } from './report.ts';
import { sections } from './sections.ts';

type Kind = 'proven' | 'changed' | 'nonGoal';

const command = new Command('npm run contract --')
  .description('The contract with Proxmox VE, statement by statement.')
  .addOption(new Option('--only <kind>', 'those alone').choices(['proven', 'changed', 'nonGoal']))
  .option('--page <file>', 'besides, the lines of that page that no entry speaks of');

runProgram(command, () => {
  const { only, page } = command.opts<{ only?: Kind; page?: string }>();
  const all = sections.flatMap(({ statements }) => statements);
  printLine([table(sections, only), '', counts(all)].join('\n'));
  if (page !== undefined) printLine(['', ...linesNotSpokenOf(page)].join('\n'));
  return Promise.resolve(0);
});

/** Throws UserError when the file cannot be read. */
function linesNotSpokenOf(page: string): string[] {
  const missing = uncovered(readPage(page), sections);
  return [
    `${missing.length} lines of the page that no entry speaks of`,
    ...missing.map(({ line, text }) => `${String(line).padStart(9)}  ${text}`),
  ];
}

function readPage(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new UserError(`${file} cannot be read (${errorCode(error) ?? String(error)}).`);
  }
}
