import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lastLines, runCommand } from './command.ts';
import { UserError } from './program.ts';

/** Shown while a build runs: what the Go command said last, and how many packages it has compiled. */
export interface BuildProgress {
  packages: number;
  last: string;
}

const moduleFolder = fileURLToPath(new URL('./tools', import.meta.url));
const oldestGo = { major: 1, minor: 25 };

/** Builds a Go program at the version of tools/go.mod and returns its path in `folder`. Throws UserError naming what is missing. */
export async function buildGoProgram(
  source: { package: string; linkerFlags: string },
  folder: string,
  progress: BuildProgress,
  signal: AbortSignal,
): Promise<string> {
  await checkGo(signal);
  const output = join(folder, 'built');
  const args = ['build', '-v', '-trimpath', '-ldflags', source.linkerFlags, '-o', output];
  const built = await runCommand('go', [...args, source.package], {
    cwd: moduleFolder,
    env: goEnvironment(),
    signal,
    onStderr: (text) => {
      for (const line of text.split('\n')) note(line, progress);
    },
  });
  if (built.code === 0) return output;
  const reason = lastLines(
    built.stderr
      .split('\n')
      .filter((line) => !isPackage(line))
      .join('\n'),
    3,
  );
  throw new UserError(`go cannot build ${source.package}: ${reason}`);
}

/** No C compiler is needed, and neither a user's workspace nor flags meant for other modules may interfere. */
function goEnvironment(): NodeJS.ProcessEnv {
  return { ...process.env, CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '-mod=readonly' };
}

async function checkGo(signal: AbortSignal): Promise<void> {
  const wanted = `${oldestGo.major}.${oldestGo.minor}`;
  const remedy = `install Go ${wanted} or newer (https://go.dev/dl)`;
  const answer = await runCommand('go', ['env', 'GOVERSION', 'GOTOOLCHAIN'], {
    cwd: moduleFolder,
    env: goEnvironment(),
    signal,
  }).catch((error: unknown) => {
    throw error instanceof UserError ? new UserError(`go is not installed: ${remedy}`) : error;
  });
  const [version = '', toolchain = ''] = answer.stdout.split('\n');
  const match = /^go(\d+)\.(\d+)/.exec(version);
  const recent =
    match !== null && Number(match[1]) >= oldestGo.major && Number(match[2]) >= oldestGo.minor;
  // An older Go may fetch the toolchain that go.mod asks for by itself, unless it is told not to.
  if (recent || (answer.code === 0 && toolchain !== 'local')) return;
  throw new UserError(`${version === '' ? 'go' : version} is too old: ${remedy}`);
}

function note(line: string, progress: BuildProgress): void {
  if (line.trim() === '') return;
  progress.last = line.trim();
  if (isPackage(line)) progress.packages += 1;
}

/** With -v the Go command prints the import path of each package it compiles, alone on a line. */
function isPackage(line: string): boolean {
  return /^[\w.\-/]+$/.test(line);
}
