import { Command } from 'commander';
import { printLine, runProgram } from './program.ts';
import { endCrashedTestStacks, endStack, stackFolder, stackNames, testStackPrefix } from './stackFolder.ts'; // prettier-ignore

/** `make down`: ends the stacks of `make up` and `make demo`, and what killed runs of anything left behind. */
const command = new Command('make down').description(
  'Ends the local stacks of this checkout, also after a crash.',
);

runProgram(command, async () => {
  const ended = await endCrashedTestStacks();
  for (const name of stackNames().filter((candidate) => !candidate.startsWith(testStackPrefix)))
    ended.push(...(await endStack(stackFolder(name))));
  for (const what of ended) printLine(`ended ${what}`);
  printLine(ended.length === 0 ? 'Nothing was running.' : 'The local stack is down.');
  return 0;
});
