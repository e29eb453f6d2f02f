import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { ProcessSpec } from './managedProcess.ts';

/** Users of the local Kubernetes. Controller and worker are the service accounts that deploy/base/rbac binds, so the same manifests hold. */
const kubernetesUsers = ['admin', 'controller', 'worker'] as const;
export type KubernetesUser = (typeof kubernetesUsers)[number];

export interface KubernetesPlan {
  /** Exists already; everything below goes there. */
  folder: string;
  etcdPort: number;
  etcdPeerPort: number;
  apiserverPort: number;
  etcdPath: string;
  apiserverPath: string;
  env: NodeJS.ProcessEnv;
}

export interface KubernetesFiles {
  url: string;
  /** The API server writes it at its first start. */
  caFile: string;
  tokens: Record<KubernetesUser, string>;
  kubeconfigs: Record<KubernetesUser, string>;
}

const systemNamespace = 'egress-proxies-operator-system';

/** Writes tokens, keys and a kubeconfig file per user, and says where they are. `host` is in the API server's certificate. */
export function writeKubernetesFiles(
  plan: Pick<KubernetesPlan, 'folder' | 'apiserverPort'>,
  host = '127.0.0.1',
): KubernetesFiles {
  const url = `https://${host}:${plan.apiserverPort}`;
  const caFile = join(plan.folder, 'apiserver', 'apiserver.crt');
  const tokens = {
    admin: randomBytes(24).toString('hex'),
    controller: randomBytes(24).toString('hex'),
    worker: randomBytes(24).toString('hex'),
  };
  const rows = [
    `${tokens.admin},admin,admin,"system:masters"`,
    `${tokens.controller},${serviceAccount('controller')},controller,"system:serviceaccounts"`,
    `${tokens.worker},${serviceAccount('worker')},worker,"system:serviceaccounts"`,
  ];
  writeSecret(join(plan.folder, 'tokens.csv'), `${rows.join('\n')}\n`);
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  writeSecret(
    join(plan.folder, 'service-accounts.key'),
    privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  );
  const kubeconfig = (user: KubernetesUser): string => {
    const file = join(plan.folder, '..', user === 'admin' ? 'kubeconfig' : `kubeconfig-${user}`);
    writeSecret(file, kubeconfigText(url, caFile, user, tokens[user]));
    return file;
  };
  return {
    url,
    caFile,
    tokens,
    kubeconfigs: {
      admin: kubeconfig('admin'),
      controller: kubeconfig('controller'),
      worker: kubeconfig('worker'),
    },
  };
}

/** etcd without fsync: its data lives as long as the stack. */
export function etcdSpec(plan: KubernetesPlan): ProcessSpec {
  const client = `http://127.0.0.1:${plan.etcdPort}`;
  const peer = `http://127.0.0.1:${plan.etcdPeerPort}`;
  return {
    name: 'etcd',
    command: plan.etcdPath,
    args: [
      '--name=local',
      `--data-dir=${join(plan.folder, 'etcd')}`,
      '--unsafe-no-fsync',
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=local=${peer}`,
      '--log-level=warn',
    ],
    env: plan.env,
    isReady: () => answersOk(`${client}/health`),
    readyWithinMs: 60_000,
    stopGraceMs: 5_000,
  };
}

/** kube-apiserver alone, with RBAC and token users; it makes its own certificate. */
export function apiserverSpec(plan: KubernetesPlan, files: KubernetesFiles): ProcessSpec {
  const key = join(plan.folder, 'service-accounts.key');
  return {
    name: 'kube-apiserver',
    command: plan.apiserverPath,
    args: [
      `--etcd-servers=http://127.0.0.1:${plan.etcdPort}`,
      `--cert-dir=${join(plan.folder, 'apiserver')}`,
      '--bind-address=127.0.0.1',
      // Without it a machine with no default route cannot start it; and nothing is to be published for it.
      '--advertise-address=127.0.0.1',
      '--endpoint-reconciler-type=none',
      `--secure-port=${plan.apiserverPort}`,
      '--authorization-mode=RBAC',
      `--token-auth-file=${join(plan.folder, 'tokens.csv')}`,
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${key}`,
      `--service-account-signing-key-file=${key}`,
      '--service-cluster-ip-range=10.0.0.0/24',
      // There is no controller manager that would make the default service accounts.
      '--disable-admission-plugins=ServiceAccount',
    ],
    env: plan.env,
    isReady: () => apiserverIsReady(files),
    readyWithinMs: 120_000,
    stopGraceMs: 5_000,
  };
}

function apiserverIsReady(files: KubernetesFiles): Promise<boolean> {
  return new Promise((resolve) => {
    const ca = readOrEmpty(files.caFile);
    if (ca === '') return resolve(false);
    const options = { ca, headers: { authorization: `Bearer ${files.tokens.admin}` } };
    request(`${files.url}/readyz`, options, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    })
      .on('error', () => resolve(false))
      .end();
  });
}

/** Whether a URL answers 200 to a GET; a failed connection is `false`. */
export async function answersOk(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false;
  }
}

function kubeconfigText(
  server: string,
  caFile: string,
  user: KubernetesUser,
  token: string,
): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'local', cluster: { server, 'certificate-authority': caFile } }],
    users: [{ name: user, user: { token } }],
    contexts: [{ name: 'local', context: { cluster: 'local', user, namespace: 'default' } }],
    'current-context': 'local',
  });
}

function serviceAccount(name: string): string {
  return `system:serviceaccount:${systemNamespace}:${name}`;
}

function writeSecret(file: string, text: string): void {
  writeFileSync(file, text, { mode: 0o600 });
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
