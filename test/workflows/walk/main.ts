/** `npm run walk`: random walks of two installations on one cluster, in scaled time. A failure prints how to go that way again. */
import { Command } from 'commander';
import { wholeNumber } from '../../../deploy/dev/commandLine.ts';
import { printLine, runProgram, UserError } from '../../../deploy/dev/program.ts';
import { scaleTime } from '../matrix/scaledTime.ts';

interface Flags {
  operations: number;
  length: number;
  seed?: number;
  path?: string;
  verbose: boolean;
}

const command = new Command('npm run walk --')
  .description('Random walks of two installations on one cluster, in scaled time.')
  .option('--operations <n>', 'at least so many', wholeNumber(), 300)
  .option('--length <n>', 'operations of one walk', wholeNumber(), 100)
  .option('--seed <n>', 'of a walk that failed', wholeNumber(Number.MIN_SAFE_INTEGER))
  .option('--path <path>', 'of a walk that failed; needs its seed')
  .option('--verbose', 'tells each operation', false);

runProgram(command, async () => {
  const { seed, path, verbose, ...rest } = command.opts<Flags>();
  if (path !== undefined && seed === undefined)
    throw new UserError('A --path says nothing without the --seed it belongs to.');
  // Before the first import of a step.
  scaleTime();
  const { describeFigures, runWalks } = await import('./run.ts');
  const { prepareGround } = await import('./server.ts');
  const startedMs = Date.now();
  const ground = await prepareGround();
  try {
    const sums = await runWalks(ground, {
      ...rest,
      ...(seed === undefined ? {} : { seed }),
      ...(path === undefined ? {} : { path }),
      patienceMs: 5 * 60_000,
      ...(verbose ? { tell: printLine } : {}),
      onWalk: (figures, seconds) =>
        printLine(`${describeFigures(figures)} (${seconds.toFixed(1)} s)`),
    });
    const minutes = (Date.now() - startedMs) / 60_000;
    printLine(
      `${sums.walks} walks in ${minutes.toFixed(1)} min: ${describeFigures(sums)}; no harm`,
    );
    return 0;
  } catch (error) {
    printLine(error instanceof Error ? error.message : String(error));
    return 1;
  } finally {
    await ground.close();
  }
});
