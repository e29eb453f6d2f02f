import { Command } from 'commander';
import { findCloudInit } from './cloudInit.ts';
import { printLine, runProgram } from './program.ts';

/** Part of `make test`: fetches what the tests of the seed read it with, so that none of them waits for a download. */
const command = new Command('fetchCloudInit').description(
  'Fetches what the tests of the seed read it with.',
);

runProgram(command, async (signal) => {
  await findCloudInit(printLine, signal);
  return 0;
});
