import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { EnvHttpProxyAgent, fetch } from 'undici';
import { lastLines, runCommand } from './command.ts';
import { UserError, errorCode, messageOf } from './program.ts';
import type { OfficialDownload } from './toolTable.ts';

/** Where nothing answers, three seconds are lost, not three minutes; HTTP(S)_PROXY and NO_PROXY are honoured. */
const connectMs = 3_000;
const silenceMs = 20_000;

export interface DownloadProgress {
  receivedMiB: number;
}

/** Downloads a program into `folder`, checks its checksum and returns its path. Throws UserError saying what failed. */
export async function downloadProgram(
  source: OfficialDownload,
  folder: string,
  progress: DownloadProgress,
  signal: AbortSignal,
): Promise<string> {
  const dispatcher = new EnvHttpProxyAgent({
    connect: { timeout: connectMs },
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
  });
  try {
    const file = join(folder, 'download');
    const wanted =
      source.sha256Url === undefined
        ? undefined
        : checksumFor(await textOf(source.sha256Url, dispatcher, signal), source.url);
    const sum = await save(source.url, file, dispatcher, progress, signal);
    if (wanted !== undefined && sum !== wanted)
      throw new UserError(`${source.url} has SHA-256 ${sum}, its publisher says ${wanted}`);
    return source.member === undefined ? file : await unpack(file, source.member, folder, signal);
  } catch (error) {
    if (error instanceof UserError || errorCode(error) === 'ENOSPC') throw error;
    throw new UserError(`${new URL(source.url).host} cannot be reached (${reasonOf(error)})`, {
      cause: error,
    });
  } finally {
    await dispatcher.destroy();
  }
}

/** The checksum of `url`'s file on a checksum page. Throws UserError when the page does not name it. */
export function checksumFor(page: string, url: string): string {
  const name = url.slice(url.lastIndexOf('/') + 1);
  for (const line of page.split('\n')) {
    const match = /^([0-9a-f]{64})(?:\s+\*?(?:.*\/)?(\S+))?\s*$/i.exec(line);
    if (match !== null && (match[2] === undefined || match[2] === name))
      return (match[1] ?? '').toLowerCase();
  }
  throw new UserError(`the checksum page of ${name} does not name it`);
}

async function textOf(
  url: string,
  dispatcher: EnvHttpProxyAgent,
  signal: AbortSignal,
): Promise<string> {
  const response = await fetch(url, { dispatcher, signal });
  if (!response.ok) throw new UserError(`${url} answered ${response.status}`);
  return response.text();
}

async function save(
  url: string,
  file: string,
  dispatcher: EnvHttpProxyAgent,
  progress: DownloadProgress,
  signal: AbortSignal,
): Promise<string> {
  const response = await fetch(url, { dispatcher, signal });
  if (!response.ok || response.body === null)
    throw new UserError(`${url} answered ${response.status}`);
  const hash = createHash('sha256');
  const measure = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      progress.receivedMiB += chunk.length / 2 ** 20;
      done(null, chunk);
    },
  });
  await pipeline(Readable.fromWeb(response.body), measure, createWriteStream(file));
  return hash.digest('hex');
}

async function unpack(
  archive: string,
  member: string,
  folder: string,
  signal: AbortSignal,
): Promise<string> {
  const result = await runCommand('tar', ['-xzf', archive, '-C', folder, member], { signal });
  if (result.code !== 0)
    throw new UserError(`tar cannot unpack ${archive}: ${lastLines(result.stderr, 1)}`);
  return join(folder, member);
}

/** fetch() hides the reason of a failed connection in the cause. */
function reasonOf(error: unknown): string {
  return errorCode(error) ?? messageOf(error);
}
