import { printLine, runProgram } from './program.ts';
import { describeTools, findTools } from './tools.ts';

/** `make tools`: fetches what is missing, so that everything after it starts at once. */
runProgram(async (signal) => {
  printLine(describeTools(await findTools(printLine, signal)));
  return 0;
});
