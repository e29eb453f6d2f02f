import { Command } from 'commander';
import { printLine, runProgram } from './program.ts';
import { startStack } from './stack.ts';
import { addressLines } from './addresses.ts';
import { isRunning, readAddresses, stackFolder, writeAddresses } from './stackFolder.ts';

/** Real times make watching easy; half of them make trying things out bearable. */
const timeScale = 0.5;

/** `make up`: the local stack until Ctrl-C, or until one of its processes ends. */
const command = new Command('make up').description('The local stack, until Ctrl-C.');

runProgram(command, async (signal) => {
  const folder = stackFolder('up');
  if (await isRunning(folder)) {
    printLine('The local stack of this checkout is up already (make down ends it).');
    printLine(readAddresses(folder) ?? 'It is still starting.');
    return 0;
  }
  const stack = await startStack({
    name: folder.name,
    timeScale,
    temporalDb: 'file',
    log: printLine,
    signal,
  });
  const lines = addressLines(stack);
  writeAddresses(folder, lines);
  printLine(`\nThe local stack is up.\n${lines.join('\n')}\nCtrl-C ends it.`);
  const interrupted = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
    if (signal.aborted) resolve();
  });
  try {
    await Promise.race([interrupted, stack.failure]);
  } finally {
    printLine('\nStopping: controller, worker, simulator, Temporal, kube-apiserver, etcd …');
    await stack.stop();
    printLine('Stopped.');
  }
  return 0;
});
