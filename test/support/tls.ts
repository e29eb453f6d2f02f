/** Certificates for tests, good and bad ones. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newCa, type Ca } from '../simulator/certificates.ts';

/** A CA of its own in a fresh folder, and server certificates signed by it. */
export interface TestCa {
  /** Folder for more files of the test; the caller removes it. */
  dir: string;
  caFile: string;
  caPem: string;
  issue: Ca['issue'];
}

export async function makeCa(name = 'Test CA'): Promise<TestCa> {
  const dir = mkdtempSync(join(tmpdir(), 'tls-'));
  const ca = await newCa(name, 30);
  const caFile = join(dir, 'ca.pem');
  writeFileSync(caFile, ca.pem);
  return { dir, caFile, caPem: ca.pem, issue: (hosts, options) => ca.issue(hosts, options) };
}
