import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parse } from 'yaml';
import { z } from 'zod';
import { writeKubernetesFiles, type KubernetesFiles } from '../../../deploy/dev/kubernetesFiles.ts';

const kubeconfig = z.object({
  users: z.tuple([
    z.object({
      user: z.strictObject({
        'client-certificate-data': z.base64(),
        'client-key-data': z.base64(),
      }),
    }),
  ]),
});

describe('what the local Kubernetes is set up with', () => {
  let folder: string;
  let files: KubernetesFiles;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'kubernetes-files-'));
    mkdirSync(join(folder, 'kubernetes'));
    files = await writeKubernetesFiles({ folder: join(folder, 'kubernetes'), apiserverPort: 6443 });
  });
  after(() => rmSync(folder, { recursive: true }));

  it('keeps every private key where its owner alone can read it, and that of the CA nowhere', () => {
    const withKeys = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .map((name) => join(folder, name))
      .filter((path) => statSync(path).isFile() && holdsKey(readFileSync(path, 'utf8')));
    const kubeconfigs = Object.values(files.kubeconfigs);
    assert.deepEqual(withKeys.sort(), [...kubeconfigs, files.serviceAccountsKeyFile].sort());
    for (const path of withKeys) assert.equal(statSync(path).mode & 0o777, 0o600, path);
  });

  it('gives each kubeconfig a certificate of the CA that the API server trusts, for a client only', () => {
    const ca = new X509Certificate(readFileSync(files.clientCaFile));
    const namespace = 'egress-proxies-operator-system';
    const subjects = {
      admin: 'CN=admin\nO=system:masters',
      controller: subjectOf(`system:serviceaccount:${namespace}:controller`),
      worker: subjectOf(`system:serviceaccount:${namespace}:worker`),
    };
    for (const name of ['admin', 'controller', 'worker'] as const) {
      const { user } = kubeconfig.parse(parse(readFileSync(files.kubeconfigs[name], 'utf8'))).users[0]; // prettier-ignore
      const pem = Buffer.from(user['client-certificate-data'], 'base64').toString();
      assert.equal(pem, files.identities[name].cert);
      assert.equal(Buffer.from(user['client-key-data'], 'base64').toString(), files.identities[name].key); // prettier-ignore
      const certificate = new X509Certificate(pem);
      assert.ok(certificate.verify(ca.publicKey), name);
      assert.equal(certificate.subject, subjects[name]);
      assert.equal(certificate.ca, false);
      assert.deepEqual(certificate.keyUsage, ['1.3.6.1.5.5.7.3.2']);
    }
  });

  it('lets nobody else read a file that others could read before', async () => {
    const again = join(folder, 'again', 'kubernetes');
    mkdirSync(again, { recursive: true });
    const { kubeconfigs } = await writeKubernetesFiles({ folder: again, apiserverPort: 6443 });
    chmodSync(kubeconfigs.worker, 0o644);
    await writeKubernetesFiles({ folder: again, apiserverPort: 6443 });
    assert.equal(statSync(kubeconfigs.worker).mode & 0o777, 0o600);
  });

  it('makes a CA of its own for every stack', async () => {
    const other = join(folder, 'other', 'kubernetes');
    mkdirSync(other, { recursive: true });
    const { clientCaFile, identities } = await writeKubernetesFiles({ folder: other, apiserverPort: 6443 }); // prettier-ignore
    const ours = new X509Certificate(readFileSync(files.clientCaFile));
    const theirs = new X509Certificate(readFileSync(clientCaFile));
    const admin = new X509Certificate(identities.admin.cert);
    assert.deepEqual([admin.verify(theirs.publicKey), admin.verify(ours.publicKey)], [true, false]);
  });
});

function holdsKey(text: string): boolean {
  return text.includes('PRIVATE KEY') || text.includes('client-key-data');
}

function subjectOf(user: string): string {
  const group = 'system:serviceaccounts';
  return `CN=${user}\nO=${group}\nO=${group}:egress-proxies-operator-system`;
}
