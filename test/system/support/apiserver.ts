/** A real etcd and kube-apiserver for tests about objects: nothing else runs, so nothing but the API server judges. */
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { kubectlFor, type Kubectl } from '../../../deploy/dev/kubectl.ts';
import { apiserverSpec, etcdSpec } from '../../../deploy/dev/kubernetes.ts';
import { writeKubernetesFiles, type KubernetesFiles, type KubernetesUser } from '../../../deploy/dev/kubernetesFiles.ts'; // prettier-ignore
import { managedProcess } from '../../../deploy/dev/managedProcess.ts';
import { claimPort } from '../../../deploy/dev/ports.ts';
import { findTool } from '../../../deploy/dev/tools.ts';

export interface ApiServer {
  /** kubectl as the administrator. */
  kubectl: Kubectl;
  /** kubectl as one of the users that the manifests know. */
  as(user: KubernetesUser): Kubectl;
  /** Address, certificates and kubeconfigs of those users. */
  files: KubernetesFiles;
  /** Throws the history of the store away, up to now: versions before it have expired. */
  compact(): Promise<void>;
  /** Ends the API server and starts it again. */
  restart(): Promise<void>;
  /** Keeps a copy of the store, and returns what sets the store back to it; both processes are started again. */
  keepStore(): Promise<() => Promise<void>>;
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
  const files = await writeKubernetesFiles(plan);
  const store = managedProcess(etcdSpec(plan), folders, () => undefined);
  const server = managedProcess(apiserverSpec(plan, files), folders, () => undefined);
  const processes = [store, server];
  const never = new AbortController().signal;
  /** Does something to the store while nothing uses it. */
  const withoutProcesses = async (change: () => void): Promise<void> => {
    for (const child of processes.toReversed()) await child.stop();
    change();
    for (const child of processes) await child.start(never);
  };
  const stop = async (): Promise<void> => {
    for (const child of processes.toReversed()) await child.stop();
    for (const port of ports) port.release();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    for (const child of processes) await child.start(never);
  } catch (error) {
    await stop();
    throw error;
  }
  const program = (await findTool('kubectl')).path;
  const [data, copy] = [join(plan.folder, 'etcd'), join(folder, 'etcd-copy')];
  const as = (user: KubernetesUser): Kubectl =>
    kubectlFor(program, files.kubeconfigs[user], folder);
  return {
    kubectl: as('admin'),
    as,
    files,
    compact: () => compact(`http://127.0.0.1:${etcd.port}`),
    restart: async () => {
      await server.stop();
      await server.start(never);
    },
    keepStore: async () => {
      await withoutProcesses(() => cpSync(data, copy, { recursive: true }));
      return () =>
        withoutProcesses(() => {
          rmSync(data, { recursive: true });
          cpSync(copy, data, { recursive: true });
        });
    },
    stop,
  };
}

const rangeSchema = z.object({ header: z.object({ revision: z.string() }) });

/** By etcd's own gateway: keys are base64, numbers text. */
async function compact(etcdUrl: string): Promise<void> {
  const ask = async (path: string, body: object): Promise<unknown> => {
    const answer = await fetch(`${etcdUrl}${path}`, { method: 'POST', body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`etcd answered ${path} with ${answer.status}`);
    return await answer.json();
  };
  const { header } = rangeSchema.parse(await ask('/v3/kv/range', { key: 'AA==' }));
  await ask('/v3/kv/compaction', { revision: header.revision, physical: true });
}
