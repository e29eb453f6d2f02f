/** `npm run matrix`: every fault with every disturbance, at every step. */
import { Command, Option } from 'commander';
import { regularExpression, wholeNumber } from '../../../deploy/dev/commandLine.ts';
import { runProgram } from '../../../deploy/dev/program.ts';
import type { MatrixOptions } from './run.ts';
import { scaleTime } from './scaledTime.ts';

const command = new Command('npm run matrix --')
  .description('Tells every fault with every disturbance, at every step.')
  .addOption(
    new Option('--filter <regex>', 'only cells whose sentence fits')
      .argParser(regularExpression)
      .default(/^/, 'all of them'),
  )
  .option('--sums', 'one at a time, as everyStep.test.ts tells them', false)
  .option('--at-once <n>', 'stories side by side', wholeNumber(), 8);

runProgram(command, async () => {
  // Before the first import of a step.
  scaleTime();
  const { runMatrix } = await import('./run.ts');
  return await runMatrix(command.opts<MatrixOptions>());
});
