/**
 * `npm run walk -- [--operations <n>] [--length <n>] [--seed <n> [--path <path>]] [--verbose]`: random walks of two installations on
 * one cluster, in scaled time. A failure prints seed and path; with both, that walk alone is gone again.
 */
import { parseArgs } from 'node:util';
import { scaleTime } from '../matrix/scaledTime.ts';

scaleTime();
const { describeFigures, runWalks } = await import('./run.ts');
const { prepareGround } = await import('./server.ts');

const { values } = parseArgs({
  options: {
    operations: { type: 'string', default: '300' },
    length: { type: 'string', default: '100' },
    seed: { type: 'string' },
    path: { type: 'string' },
    verbose: { type: 'boolean', default: false },
  },
});
const { seed, path } = values;
const startedMs = Date.now();
const print = (text: string): void => void process.stdout.write(`${text}\n`);
const ground = await prepareGround();
try {
  const sums = await runWalks(ground, {
    operations: Number(values.operations),
    length: Number(values.length),
    ...(seed === undefined ? {} : { seed: Number(seed) }),
    ...(path === undefined ? {} : { path }),
    patienceMs: 5 * 60_000,
    ...(values.verbose ? { tell: print } : {}),
    onWalk: (figures, seconds) => print(`${describeFigures(figures)} (${seconds.toFixed(1)} s)`),
  });
  const minutes = (Date.now() - startedMs) / 60_000;
  print(`${sums.walks} walks in ${minutes.toFixed(1)} min: ${describeFigures(sums)}; no harm`);
} catch (error) {
  print(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
} finally {
  await ground.close();
}
