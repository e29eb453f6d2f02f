/** A real etcd and kube-apiserver for tests about objects: nothing else runs, so nothing but the API server judges. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kubectlFor, type Kubectl } from '../../../deploy/dev/kubectl.ts';
import {
  apiserverSpec,
  etcdSpec,
  writeKubernetesFiles,
  type KubernetesFiles,
} from '../../../deploy/dev/kubernetes.ts';
import { managedProcess } from '../../../deploy/dev/managedProcess.ts';
import { claimPort } from '../../../deploy/dev/ports.ts';
import { findTool } from '../../../deploy/dev/tools.ts';

export interface ApiServer {
  /** kubectl as the administrator. */
  kubectl: Kubectl;
  /** Address, certificate, tokens and kubeconfigs of the users the manifests know. */
  files: KubernetesFiles;
  stop(): Promise<void>;
}

/** Starts both on free ports with an empty store; ready when it resolves. Throws UserError when one does not come up. */
export async function startApiServer(): Promise<ApiServer> {
  const folder = mkdtempSync(join(tmpdir(), 'egress-proxies-api-'));
  const inside = (name: string): string => {
    const path = join(folder, name);
    mkdirSync(path);
    return path;
  };
  const folders = { logs: inside('logs'), pids: inside('pids') };
  const ports = [await claimPort(), await claimPort(), await claimPort()] as const;
  const [etcd, etcdPeer, apiserver] = ports;
  const plan = {
    folder: inside('kubernetes'),
    etcdPort: etcd.port,
    etcdPeerPort: etcdPeer.port,
    apiserverPort: apiserver.port,
    etcdPath: (await findTool('etcd')).path,
    apiserverPath: (await findTool('kube-apiserver')).path,
    env: process.env,
  };
  const files = writeKubernetesFiles(plan);
  const processes = [etcdSpec(plan), apiserverSpec(plan, files)].map((spec) =>
    managedProcess(spec, folders, () => undefined),
  );
  const stop = async (): Promise<void> => {
    for (const child of processes.toReversed()) await child.stop();
    for (const port of ports) port.release();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    for (const child of processes) await child.start(new AbortController().signal);
  } catch (error) {
    await stop();
    throw error;
  }
  const program = (await findTool('kubectl')).path;
  return { kubectl: kubectlFor(program, files.kubeconfigs.admin, folder), files, stop };
}
