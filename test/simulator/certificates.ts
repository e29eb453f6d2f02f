import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';

export interface Certificates {
  /** PEM texts for `startSimulator({ tls })`. */
  key: string;
  cert: string;
  /** PEM of the CA, what a client trusts (`pve-root-ca.pem`), and the file it stands in. */
  ca: string;
  caFile: string;
}

/**
 * Makes a CA and a server certificate for `hosts` (names or addresses) in `dir` with the `openssl` program, or reads
 * the ones already there. Throws when openssl is missing or fails.
 */
export function makeCertificates(
  dir: string,
  hosts: readonly string[] = ['127.0.0.1', 'localhost'],
): Certificates {
  const file = (name: string): string => join(dir, name);
  if (!existsSync(file('server.pem'))) {
    mkdirSync(dir, { recursive: true });
    const names = hosts.map((host) => (isIP(host) === 0 ? `DNS:${host}` : `IP:${host}`)).join(',');
    writeFileSync(file('server.ext'), `subjectAltName=${names}\nextendedKeyUsage=serverAuth\n`);
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    // The DNs differ, otherwise a verifier takes the server certificate for self-signed.
    openssl('req', '-x509', ...key, '-days', '3650', '-subj', '/CN=Simulated PVE CA', '-keyout', file('ca.key'), '-out', file('ca.pem')); // prettier-ignore
    openssl('req', ...key, '-subj', '/CN=simulated-pve', '-keyout', file('server.key'), '-out', file('server.csr')); // prettier-ignore
    openssl('x509', '-req', '-in', file('server.csr'), '-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-CAcreateserial', '-days', '3650', '-extfile', file('server.ext'), '-out', file('server.pem')); // prettier-ignore
  }
  return {
    key: readFileSync(file('server.key'), 'utf8'),
    cert: readFileSync(file('server.pem'), 'utf8'),
    ca: readFileSync(file('ca.pem'), 'utf8'),
    caFile: file('ca.pem'),
  };
}

function openssl(...args: readonly string[]): void {
  execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}
