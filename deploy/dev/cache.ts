import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { UserError, errorCode, messageOf } from './program.ts';

/** The cache shared by every checkout of this user: `$EGRESS_PROXIES_CACHE`, else beneath `$XDG_CACHE_HOME`, else beneath `~/.cache`. */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  const own = env['EGRESS_PROXIES_CACHE'];
  if (own !== undefined && own !== '') return own;
  const xdg = env['XDG_CACHE_HOME'];
  const base = xdg !== undefined && xdg !== '' ? xdg : join(homedir(), '.cache');
  return join(base, 'egress-proxies-operator');
}

/** Whether something is at the path. */
export async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch {
    return false;
  }
}

/**
 * Makes `<cache>/<key>` out of what `fill` puts into an empty folder, all or nothing: the folder is filled elsewhere and
 * renamed. One caller at a time per key (the caller holds a lock), so what a killed caller left is removed first.
 * Throws UserError for a full disk or a cache that cannot be written.
 */
export async function fillCache(
  cache: string,
  key: string,
  fill: (folder: string) => Promise<void>,
): Promise<void> {
  const unfinished = join(cache, 'unfinished');
  const folder = join(unfinished, `${key}-${randomBytes(4).toString('hex')}`);
  try {
    await mkdir(folder, { recursive: true });
    for (const name of await readdir(unfinished)) {
      const left = name.startsWith(`${key}-`) && join(unfinished, name) !== folder;
      if (left) await rm(join(unfinished, name), { recursive: true, force: true });
    }
    await fill(folder);
    await rename(folder, join(cache, key));
  } catch (error) {
    throw explainWriteFailure(error, cache);
  } finally {
    // Its own failure would hide the one that matters.
    await rm(folder, { recursive: true, force: true }).catch(() => undefined);
  }
}

function explainWriteFailure(error: unknown, cache: string): unknown {
  const code = errorCode(error);
  if (code === 'ENOSPC' || /no space left on device/i.test(messageOf(error)))
    return new UserError(
      `The disk is full: free about 4 GB (cache ${cache}, and Go's own cache for a build), or set EGRESS_PROXIES_CACHE to a folder on another disk.`,
    );
  if (code !== undefined && ['EACCES', 'EROFS', 'EPERM', 'ENOTDIR'].includes(code))
    return new UserError(
      `The cache folder ${cache} cannot be written (${code}): set EGRESS_PROXIES_CACHE to a folder you may write.`,
    );
  return error;
}
