/** The two files a provider is reached with: API token and CA bundle. Their content never leaves this folder. */
import { X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { ProviderError } from '../providerError.ts';

/** One API token. `secret` is kept apart so that an answer echoing it can be cleaned. */
export interface Token {
  /** `<user>@<realm>!<tokenid>`; not a secret. */
  id: string;
  secret: string;
  /** Value of the `Authorization` header. */
  authorization: string;
}

/** CA certificates to trust; `null` means the roots of Node and of the system. `version` changes with the file. */
export interface Trust {
  version: string;
  ca: string[] | null;
}

// The whole header value pasted into the file would otherwise pass as a user name.
const tokenPattern =
  /^(?!PVEAPIToken=)([^\s:/]+@[A-Za-z][A-Za-z0-9._-]*![A-Za-z][A-Za-z0-9._-]*)=([^\s=]+)$/;
const pemPattern = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/**
 * Reads the token file; called for every request, so that a rotated token counts at once.
 * Throws Transient `CredentialsUnavailable` (no file yet) or Permanent `TokenMalformed`.
 */
export async function readToken(provider: string, tokenFile: string): Promise<Token> {
  const text = await readCredential(provider, 'token', tokenFile);
  const match = tokenPattern.exec(text.trim());
  const id = match?.[1];
  const secret = match?.[2];
  if (id === undefined || secret === undefined) throw malformedToken(provider, tokenFile);
  return { id, secret, authorization: `PVEAPIToken=${headerSafe(`${id}=${secret}`)}` };
}

/**
 * A loader of the CA file that reads it again only when it changed.
 * It throws Transient `CredentialsUnavailable` (no file yet) or Permanent `CertificateInvalid` (no certificate in it).
 */
export function trustLoader(provider: string, caFile: string | null): () => Promise<Trust> {
  let last: Trust | null = null;
  return async () => {
    if (caFile === null) return { version: 'system', ca: null };
    const version = await fileVersion(provider, caFile);
    if (last?.version === version) return last;
    const text = await readCredential(provider, 'CA', caFile);
    last = { version, ca: certificatesOf(provider, caFile, text) };
    return last;
  };
}

/**
 * pveproxy percent-decodes the value and ends it at `;` (api-facts 1.4), and a header line holds ASCII only.
 */
function headerSafe(line: string): string {
  return line.replaceAll(/[%;]|[^\u0021-\u007e]+/g, (piece) =>
    piece === ';' ? '%3B' : encodeURIComponent(piece),
  );
}

async function readCredential(provider: string, kind: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw unavailable(provider, kind, path, error);
  }
}

/** A kubelet swaps mounted Secrets by symlink, so the inode changes even when size and second do not. */
async function fileVersion(provider: string, path: string): Promise<string> {
  try {
    const { ino, mtimeMs, size } = await stat(path);
    return `${ino}:${mtimeMs}:${size}`;
  } catch (error) {
    throw unavailable(provider, 'CA', path, error);
  }
}

/** Node ignores a `ca` that is no certificate without a word, so each block is parsed here first. */
function certificatesOf(provider: string, path: string, text: string): string[] {
  const blocks = text.match(pemPattern) ?? [];
  if (blocks.length === 0) throw invalidCa(provider, path, 'holds no PEM certificate');
  return blocks.map((block, index) => {
    try {
      return new X509Certificate(block).toString();
    } catch {
      throw invalidCa(provider, path, `holds a certificate (number ${index + 1}) that is broken`);
    }
  });
}

function unavailable(provider: string, kind: string, path: string, error: unknown): ProviderError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
  const remedy = `put the file there: the Secret of provider ${provider}, or its mount, is missing`;
  return new ProviderError(
    'Transient',
    `${kind} file ${path} of provider ${provider} cannot be read (${code}); ${remedy}`,
    { reason: 'CredentialsUnavailable', scope: 'provider', provider, remedy },
    error,
  );
}

function malformedToken(provider: string, path: string): ProviderError {
  const remedy = 'write exactly one line <user>@<realm>!<tokenid>=<secret> into it';
  return new ProviderError(
    'Permanent',
    `token file ${path} of provider ${provider} does not hold an API token; ${remedy}`,
    { reason: 'TokenMalformed', scope: 'provider', provider, remedy },
  );
}

function invalidCa(provider: string, path: string, problem: string): ProviderError {
  const remedy = "use the cluster's /etc/pve/pve-root-ca.pem";
  return new ProviderError(
    'Permanent',
    `CA file ${path} of provider ${provider} ${problem}; ${remedy}`,
    { reason: 'CertificateInvalid', scope: 'provider', provider, remedy },
  );
}
