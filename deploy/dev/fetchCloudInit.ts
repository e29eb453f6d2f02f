import { findCloudInit } from './cloudInit.ts';
import { printLine, runProgram } from './program.ts';

/** Part of `make test`: fetches what the tests of the seed read it with, so that none of them waits for a download. */
runProgram(async (signal) => {
  await findCloudInit(printLine, signal);
  return 0;
});
