/** Whom a client trusts that no CA file was named for. Node reads the system's roots once, so each question is a process. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runCommand } from '../../deploy/dev/command.ts';
import { withRig } from '../support/proxmoxClient.ts';
import { makeCa } from '../support/tls.ts';

const program = fileURLToPath(new URL('../support/askOnce.ts', import.meta.url));

/** How a process fares that is told where the system keeps its roots. */
async function fare(url: string, tokenFile: string, env: Record<string, string>): Promise<string> {
  const args = [program, url, tokenFile];
  const { stdout, stderr } = await runCommand(process.execPath, args, { env, timeoutMs: 60_000 });
  return stdout === '' ? stderr : stdout;
}

describe('without a CA file', () => {
  it("the system's roots decide, those that an administrator added to it, too", () =>
    withRig({}, async ({ peer, tokenFile, ca }) => {
      const ours = { SSL_CERT_FILE: ca.caFile, SSL_CERT_DIR: '/nowhere' };
      assert.equal(await fare(peer.url, tokenFile, ours), 'trusted');
      const other = await makeCa('Another CA');
      const theirs = { ...ours, SSL_CERT_FILE: other.caFile };
      const refused = await fare(peer.url, tokenFile, theirs);
      assert.equal(refused, 'Permanent CertificateInvalid provider');
      rmSync(other.dir, { recursive: true });
      assert.equal(peer.requests.length, 1);
    }));
});
