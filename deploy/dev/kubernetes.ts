import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import type { KubernetesFiles } from './kubernetesFiles.ts';
import type { ProcessSpec } from './managedProcess.ts';

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

/** kube-apiserver alone, with RBAC and users by client certificate; it makes its own server certificate. */
export function apiserverSpec(plan: KubernetesPlan, files: KubernetesFiles): ProcessSpec {
  const key = files.serviceAccountsKeyFile;
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
      `--client-ca-file=${files.clientCaFile}`,
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
    request(`${files.url}/readyz`, { ca, ...files.identities.admin }, (response) => {
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

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
