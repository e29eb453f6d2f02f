/** What the local Kubernetes is set up with before it starts: who its users are, and how they log in. */
import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { newCa, type Ca, type Identity } from '../../test/simulator/certificates.ts';

export type KubernetesUser = 'admin' | 'controller' | 'worker';

export interface KubernetesFiles {
  url: string;
  /** Of the server; the API server writes it at its first start. */
  caFile: string;
  /** Of the users: whom it has signed may log in. */
  clientCaFile: string;
  serviceAccountsKeyFile: string;
  /** Client certificates and their private keys, for requests without kubectl. */
  identities: Record<KubernetesUser, Identity>;
  /** With certificate and key in them, so nothing but these files is needed to log in. */
  kubeconfigs: Record<KubernetesUser, string>;
}

const systemNamespace = 'egress-proxies-operator-system';
/** A stack in containers keeps its files for as long as its volume. */
const validDays = 3_650;

/**
 * Makes a CA for the users, a kubeconfig file with a client certificate for each of them, and the key that signs tokens
 * of service accounts; says where they are. What is secret is readable by its owner only; the key of the CA is not kept.
 * `host` is in the API server's certificate.
 */
export async function writeKubernetesFiles(
  plan: { folder: string; apiserverPort: number },
  host = '127.0.0.1',
): Promise<KubernetesFiles> {
  const url = `https://${host}:${plan.apiserverPort}`;
  const inside = (name: string): string => join(plan.folder, name);
  const [caFile, clientCaFile] = [join(inside('apiserver'), 'apiserver.crt'), inside('client-ca.crt')]; // prettier-ignore
  const serviceAccountsKeyFile = inside('service-accounts.key');
  const ca = await newCa('Users of the local Kubernetes', validDays);
  const identities = {
    admin: await ca.issueClient('admin', ['system:masters']),
    controller: await serviceAccount('controller', ca),
    worker: await serviceAccount('worker', ca),
  };
  writeFileSync(clientCaFile, ca.pem);
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const signingKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  writeSecret(serviceAccountsKeyFile, signingKey);
  const kubeconfig = (user: KubernetesUser): string => {
    const file = join(plan.folder, '..', user === 'admin' ? 'kubeconfig' : `kubeconfig-${user}`);
    writeSecret(file, kubeconfigText(url, caFile, user, identities[user]));
    return file;
  };
  return {
    url,
    caFile,
    clientCaFile,
    serviceAccountsKeyFile,
    identities,
    kubeconfigs: {
      admin: kubeconfig('admin'),
      controller: kubeconfig('controller'),
      worker: kubeconfig('worker'),
    },
  };
}

/**
 * One of the service accounts that deploy/base/rbac binds, with the groups that Kubernetes gives it, so the same
 * manifests hold: RBAC looks at names only, and there is no controller manager here that would give it a token.
 */
function serviceAccount(name: string, ca: Ca): Promise<Identity> {
  const group = 'system:serviceaccounts';
  return ca.issueClient(`system:serviceaccount:${systemNamespace}:${name}`, [
    group,
    `${group}:${systemNamespace}`,
  ]);
}

function kubeconfigText(
  server: string,
  caFile: string,
  name: KubernetesUser,
  { cert, key }: Identity,
): string {
  const base64 = (pem: string): string => Buffer.from(pem).toString('base64');
  const user = { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) };
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'local', cluster: { server, 'certificate-authority': caFile } }],
    users: [{ name, user }],
    contexts: [{ name: 'local', context: { cluster: 'local', user: name, namespace: 'default' } }],
    'current-context': 'local',
  });
}

function writeSecret(file: string, text: string): void {
  writeFileSync(file, text, { mode: 0o600 });
  // The mode above is for files that are made.
  chmodSync(file, 0o600);
}
