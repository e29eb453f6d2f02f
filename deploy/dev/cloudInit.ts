/** cloud-init's own code, for the tests that read seeds with it. It is unpacked, never installed: a package of that name would set up the machine anew at its next boot. */
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheFolder, exists, fillCache } from './cache.ts';
import { lastLines, runCommand } from './command.ts';
import { waitForLock } from './lock.ts';
import { UserError } from './program.ts';
import type { Log } from './program.ts';
import { withProgress } from './progress.ts';

export interface CloudInit {
  /** The interpreter that its package was made for. */
  python: string;
  /** For PYTHONPATH; null: the interpreter finds it by itself. */
  modules: string | null;
}

/** Debian makes its packages for this one, whatever else is first on PATH. */
const systemPython = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3';

/** What it imports beside Python's own modules. */
const requirements = ['configobj==5.0.9', 'PyYAML==6.0.4', 'requests==2.34.2'];

/**
 * Finds cloud-init as a module of the system's Python, else in the cache, else fetches Debian's package and what it
 * imports. Throws UserError that says what is missing.
 */
export async function findCloudInit(
  log: Log = () => undefined,
  signal: AbortSignal = new AbortController().signal,
  python = systemPython,
): Promise<CloudInit> {
  const asks = 'import cloudinit.sources.DataSourceNoCloud';
  const system = await runCommand(python, ['-c', asks], { cwd: '/', signal });
  if (system.code === 0) return { python, modules: null };
  const version = await pythonVersion(python, signal);
  const cache = cacheFolder(process.env);
  const key = `cloud-init-python${version}`;
  const modules = join(cache, key, 'modules');
  if (await exists(modules)) return { python, modules };
  const lock = await waitForLock(`${cache}/${key}`, 'fetching cloud-init', () => undefined, signal);
  try {
    if (!(await exists(modules)))
      await withProgress(log, 'cloud-init: fetching its package and what it imports', () =>
        fillCache(cache, key, (folder) => fetchCloudInit(version, folder, signal)),
      );
  } finally {
    lock.release();
  }
  return { python, modules };
}

/** `3.11`. */
async function pythonVersion(python: string, signal: AbortSignal): Promise<string> {
  const asks = 'import sys; print("%d.%d" % sys.version_info[:2])';
  const { code, stdout, stderr } = await runCommand(python, ['-c', asks], { signal });
  if (code !== 0) throw new UserError(`${python} does not run: ${lastLines(stderr, 1)}`);
  return stdout.trim();
}

async function fetchCloudInit(version: string, folder: string, signal: AbortSignal): Promise<void> {
  const modules = join(folder, 'modules');
  await mkdir(modules);
  const from = join(folder, 'package');
  await mkdir(from);
  await downloadPackage(from, signal);
  const archive = (await readdir(from)).find((name) => name.endsWith('.deb'));
  if (archive === undefined) throw new UserError('apt-get downloaded no package cloud-init');
  await mustRun('dpkg', ['-x', join(from, archive), from], 'unpack cloud-init', signal);
  const own = join(from, 'usr/lib/python3/dist-packages/cloudinit');
  await rename(own, join(modules, 'cloudinit'));
  await rm(from, { recursive: true });
  const options = ['--quiet', '--disable-pip-version-check'];
  const target = ['--only-binary=:all:', '--python-version', version, '--target', modules];
  const install = ['-m', 'pip', 'install', ...options, ...target, ...requirements];
  await mustRun('python3', install, `fetch ${requirements.join(', ')} with pip`, signal);
}

/** Fresh package lists are fetched by root only, and only when the old ones do not do. */
async function downloadPackage(folder: string, signal: AbortSignal): Promise<void> {
  const download = (): ReturnType<typeof runCommand> =>
    runCommand('apt-get', ['download', '-qq', 'cloud-init'], { cwd: folder, signal });
  if ((await download()).code === 0) return;
  if (process.getuid?.() === 0)
    await mustRun('apt-get', ['update', '-qq'], 'update the package lists', signal);
  const { code, stderr } = await download();
  if (code === 0) return;
  throw new UserError(
    `Debian's package cloud-init, with whose code the tests read seeds, cannot be downloaded: ${lastLines(stderr, 1)}. Run apt-get update as root, or install cloud-init where the system's Python finds it.`,
  );
}

async function mustRun(
  command: string,
  args: readonly string[],
  what: string,
  signal: AbortSignal,
): Promise<void> {
  const { code, stderr } = await runCommand(command, args, { signal });
  if (code !== 0)
    throw new UserError(
      `${command} cannot ${what}, which the tests of the seed need: ${lastLines(stderr, 1)}`,
    );
}
