/** The two files of a provider, checked by the rules the operator reads them with, before they go into a Secret. */
import { readFile, stat } from 'node:fs/promises';
import { readToken, trustLoader } from '../../activities/proxmox/credentials.ts';

export interface CredentialFiles {
  tokenFile: string;
  caFile: string;
}

/** Every problem of the two files as a sentence, without a word of their content; empty when there is none. */
export async function problemsOf({ tokenFile, caFile }: CredentialFiles): Promise<string[]> {
  const problems = [...(await tokenProblems(tokenFile)), ...(await caProblems(caFile))];
  return problems.filter((problem) => problem !== null);
}

async function tokenProblems(path: string): Promise<(string | null)[]> {
  if (!(await isFile(path))) {
    return [`token file ${path} is missing; PROXMOX_TOKEN_FILE=<path> names another one`];
  }
  const format = await readToken('', path).then(
    () => null,
    () => `token file ${path} is not exactly one line <user>@<realm>!<tokenid>=<secret>`,
  );
  return [format, await accessProblem(path)];
}

/** The secret is for its owner only, as a private key is. */
async function accessProblem(path: string): Promise<string | null> {
  const { mode } = await stat(path);
  if ((mode & 0o077) === 0) return null;
  return `token file ${path} can be read by others; chmod 0600 ${path}`;
}

async function caProblems(path: string): Promise<(string | null)[]> {
  if (!(await isFile(path))) {
    return [`CA file ${path} is missing; PROXMOX_CA_FILE=<path> names another one`];
  }
  const text = await readFile(path, 'utf8');
  if (text.includes('PRIVATE KEY-----')) {
    return [
      `CA file ${path} holds a private key, which must not leave its host; use pve-root-ca.pem`,
    ];
  }
  return trustLoader('', path)().then(
    () => [],
    () => [`CA file ${path} holds no valid PEM certificate; use the cluster's pve-root-ca.pem`],
  );
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}
