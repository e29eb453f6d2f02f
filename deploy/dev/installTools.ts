import { Command } from 'commander';
import { printLine, runProgram } from './program.ts';
import { describeTools, findTools } from './tools.ts';

/** `make tools`: fetches what is missing, so that everything after it starts at once. */
const command = new Command('make tools').description(
  'Fetches the programs that the local stack needs, if they are missing.',
);

runProgram(command, async (signal) => {
  printLine(describeTools(await findTools(printLine, signal)));
  return 0;
});
