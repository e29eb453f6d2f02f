/**
 * `npm run matrix -- [--filter <regular expression>] [--sums] [--at-once <n>]`: every fault with every disturbance, at
 * every step. `--sums`: one at a time, as everyStep.test.ts tells them.
 */
import { scaleTime } from './scaledTime.ts';

scaleTime();
const { runMatrix } = await import('./run.ts');
process.exitCode = await runMatrix(process.argv.slice(2));
