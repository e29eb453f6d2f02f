/** `npm run matrix -- [--filter <text>] [--sums] [--at-once <n>]`: every fault with every disturbance, at every step. */
import { scaleTime } from './scaledTime.ts';

scaleTime();
const { runMatrix } = await import('./run.ts');
process.exitCode = await runMatrix(process.argv.slice(2));
