/** Certificates for tests, good and bad ones, made with the `openssl` program. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A CA of its own in a fresh folder, and server certificates signed by it. */
export interface TestCa {
  /** Folder for more files of the test; the caller removes it. */
  dir: string;
  caFile: string;
  caPem: string;
  /** Certificate for these names and addresses; `expired` makes one whose time is over. */
  issue(hosts: readonly string[], options?: { expired?: boolean }): { key: string; cert: string };
}

/** Throws when openssl is missing. */
export function makeCa(name = 'Test CA'): TestCa {
  const dir = mkdtempSync(join(tmpdir(), 'tls-'));
  const at = (file: string): string => join(dir, file);
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const openssl = (...args: string[]): void => {
    execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  };
  const subject = ['-subj', `/CN=${name}`];
  openssl('req', '-x509', ...newKey, '-days', '30', ...subject, '-keyout', at('ca.key'), '-out', at('ca.pem')); // prettier-ignore
  let count = 0;
  return {
    dir,
    caFile: at('ca.pem'),
    caPem: readFileSync(at('ca.pem'), 'utf8'),
    issue: (hosts, { expired = false } = {}) => {
      count += 1;
      const [key, csr, cert] = ['key', 'csr', 'pem'].map((end) => at(`server${count}.${end}`));
      if (key === undefined || csr === undefined || cert === undefined) throw new Error('no files');
      const names = hosts.map((host) => `${isIP(host) === 0 ? 'DNS' : 'IP'}:${host}`).join(',');
      openssl('req', ...newKey, '-subj', '/CN=test server', '-addext', `subjectAltName=${names}`, '-keyout', key, '-out', csr); // prettier-ignore
      const days = expired ? '-1' : '30';
      openssl('x509', '-req', '-in', csr, '-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-CAcreateserial', '-days', days, '-copy_extensions', 'copy', '-out', cert); // prettier-ignore
      return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
    },
  };
}
