/** A real etcd and kube-apiserver for tests about objects: nothing else runs, so nothing but the API server judges. */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { request, Agent } from 'undici';
import { runCommand, type CommandResult } from '../../../deploy/dev/command.ts';
import { managedProcess, type ManagedProcess } from '../../../deploy/dev/managedProcess.ts';
import { claimPort } from '../../../deploy/dev/ports.ts';
import { findTool } from '../../../deploy/dev/tools.ts';

export interface ApiServer {
  /** Runs kubectl against this server; `input` goes to its standard input. */
  kubectl(args: readonly string[], input?: string): Promise<CommandResult>;
  stop(): Promise<void>;
}

const never = new AbortController().signal;

/** Starts both on free ports with an empty store; ready when it resolves. Throws UserError when one does not come up. */
export async function startApiServer(): Promise<ApiServer> {
  const folder = mkdtempSync(join(tmpdir(), 'egress-proxies-api-'));
  const logs = join(folder, 'logs');
  const pids = join(folder, 'pids');
  mkdirSync(logs);
  mkdirSync(pids);
  const ports = { client: await claimPort(), peer: await claimPort(), secure: await claimPort() };
  const etcdUrl = `http://127.0.0.1:${ports.client.port}`;
  const serverUrl = `https://127.0.0.1:${ports.secure.port}`;
  const agent = new Agent({ connect: { rejectUnauthorized: false } });
  const token = randomBytes(16).toString('hex');
  const started: ManagedProcess[] = [];

  const start = async (
    name: 'etcd' | 'kube-apiserver',
    args: string[],
    isReady: () => Promise<boolean>,
  ): Promise<void> => {
    const { path } = await findTool(name);
    const spec = { name, command: path, args, env: process.env, isReady };
    const child = managedProcess(
      { ...spec, readyWithinMs: 60_000, stopGraceMs: 10_000 },
      { logs, pids },
      () => undefined,
    );
    started.push(child);
    await child.start(never);
  };

  const stop = async (): Promise<void> => {
    for (const child of started.toReversed()) await child.stop();
    await agent.close();
    for (const port of Object.values(ports)) port.release();
    rmSync(folder, { recursive: true, force: true });
  };

  try {
    await start('etcd', etcdFlags(folder, etcdUrl, `http://127.0.0.1:${ports.peer.port}`), () =>
      answers(agent, `${etcdUrl}/health`, {}),
    );
    await start('kube-apiserver', apiServerFlags(folder, etcdUrl, ports.secure.port, token), () =>
      answers(agent, `${serverUrl}/readyz`, { authorization: `Bearer ${token}` }),
    );
  } catch (error) {
    await stop();
    throw error;
  }
  const kubectlPath = (await findTool('kubectl')).path;
  const access = [
    `--server=${serverUrl}`,
    `--token=${token}`,
    '--insecure-skip-tls-verify',
    `--cache-dir=${join(folder, 'kubectl')}`,
  ];
  // No kubeconfig of the person who runs the tests is looked at.
  const env = { ...process.env, KUBECONFIG: '/dev/null' };
  return {
    kubectl: (args, input = '') => runCommand(kubectlPath, [...access, ...args], { input, env }),
    stop,
  };
}

async function answers(
  agent: Agent,
  url: string,
  headers: Record<string, string>,
): Promise<boolean> {
  try {
    const { statusCode, body } = await request(url, { dispatcher: agent, headers });
    await body.dump();
    return statusCode === 200;
  } catch {
    return false;
  }
}

function etcdFlags(folder: string, clientUrl: string, peerUrl: string): string[] {
  return [
    `--data-dir=${join(folder, 'etcd')}`,
    `--listen-client-urls=${clientUrl}`,
    `--advertise-client-urls=${clientUrl}`,
    `--listen-peer-urls=${peerUrl}`,
    // The store lives as long as the test: nothing needs to survive a power cut.
    '--unsafe-no-fsync',
  ];
}

function apiServerFlags(folder: string, etcdUrl: string, port: number, token: string): string[] {
  const keyFile = join(folder, 'serviceAccounts.pem');
  const tokenFile = join(folder, 'tokens.csv');
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  writeFileSync(keyFile, privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 });
  writeFileSync(tokenFile, `${token},admin,admin,system:masters\n`, { mode: 0o600 });
  return [
    `--etcd-servers=${etcdUrl}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${port}`,
    `--cert-dir=${join(folder, 'certs')}`,
    `--token-auth-file=${tokenFile}`,
    '--authorization-mode=RBAC',
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${keyFile}`,
    `--service-account-signing-key-file=${keyFile}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    '--endpoint-reconciler-type=none',
  ];
}
