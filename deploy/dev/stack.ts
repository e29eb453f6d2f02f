import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import { abortReason } from './command.ts';
import { kubectlFor } from './kubectl.ts';
import type { Kubectl } from './kubectl.ts';
import { writeKubernetesFiles } from './kubernetesFiles.ts';
import type { KubernetesFiles } from './kubernetesFiles.ts';
import type { Lock } from './lock.ts';
import type { ManagedProcess } from './managedProcess.ts';
import { startPageServer } from './pageServer.ts';
import type { PageServer } from './pageServer.ts';
import { signalGroup } from './processRecord.ts';
import type { Log } from './program.ts';
import { programEnvironment } from './programs.ts';
import { initSimulator, providersConfigText, simulatorAccess } from './simulator.ts';
import type { SimulatorAccess } from './simulator.ts';
import { checkout, leaveStackFolder, stackFolder, stopOrder, takeStackFolder } from './stackFolder.ts'; // prettier-ignore
import type { ProcessName, StackFolder } from './stackFolder.ts';
import { claimStackPorts } from './stackPorts.ts';
import type { ClaimedStackPorts, StackPorts } from './stackPorts.ts';
import { stackProcesses } from './stackProcesses.ts';
import { temporalCliFor, temporalClient } from './temporalServer.ts';
import type { TemporalCli } from './temporalServer.ts';
import { findTools } from './tools.ts';

export interface StackOptions {
  /** Folder beneath `.local/`. */
  name: string;
  /** Of the simulator's task and boot times; 1 is as measured on a real host. */
  timeScale: number;
  /** Only a file lets Temporal be killed and started again with its workflows. */
  temporalDb: 'file' | 'memory';
  /** Further flags, `--name=value`. */
  workerFlags?: readonly string[];
  controllerFlags?: readonly string[];
  /** Changes the providers config before the worker first reads it. */
  providersConfig?: (text: string) => string;
  /** Processes that are set up but not started. */
  notStarted?: readonly ProcessName[];
  log: Log;
  signal: AbortSignal;
}

/** A running stack. */
export interface Stack {
  folder: StackFolder;
  ports: StackPorts;
  processes: Record<ProcessName, ManagedProcess>;
  kubernetes: KubernetesFiles;
  kubectl: Kubectl;
  temporal: Client;
  temporalCli: TemporalCli;
  /** Path of the program `temporal`. */
  temporalProgram: string;
  simulator: SimulatorAccess;
  pages: PageServer;
  providersConfigFile: string;
  /** Never resolves, and rejects when a process ends that nobody ended: with its name and the last lines of its log. */
  failure: Promise<never>;
  /** Ends everything in order, bounded in time, and gives folder and ports back. May be called twice. */
  stop(): Promise<void>;
}

/**
 * Starts a whole stack and returns when every process is ready. Whatever goes wrong, nothing is left running.
 * Throws UserError naming what could not start, or the signal's reason.
 */
export async function startStack(options: StackOptions): Promise<Stack> {
  const folder = stackFolder(options.name);
  const lock = await takeStackFolder(folder);
  const ports = await claimStackPorts();
  const stack = await prepare(options, folder, lock, ports).catch((error: unknown) => {
    ports.release();
    lock.release();
    throw error;
  });
  try {
    await startProcesses(options, stack);
    return stack;
  } catch (error) {
    await stack.stop();
    throw error;
  }
}

async function prepare(
  options: StackOptions,
  folder: StackFolder,
  lock: Lock,
  claimed: ClaimedStackPorts,
): Promise<Stack> {
  const tools = await findTools(options.log, options.signal);
  const { ports } = claimed;
  const kubernetesPlan = {
    folder: join(folder.path, 'kubernetes'),
    etcdPort: ports.etcd,
    etcdPeerPort: ports.etcdPeer,
    apiserverPort: ports.apiserver,
    etcdPath: tools.etcd.path,
    apiserverPath: tools['kube-apiserver'].path,
    env: programEnvironment({}),
  };
  mkdirSync(kubernetesPlan.folder);
  const kubernetes = await writeKubernetesFiles(kubernetesPlan);
  const simulator = await initSimulator(join(folder.path, 'simulator'), options.signal);
  const simulatorUrl = `https://127.0.0.1:${ports.simulator}`;
  const providersConfigFile = join(folder.path, 'providers.yaml');
  const config = providersConfigText(simulatorUrl, simulator);
  writeFileSync(providersConfigFile, options.providersConfig?.(config) ?? config);
  const temporal = temporalClient(ports.temporal);
  const pages = await startPageServer(ports.pages);
  const { promise: failure, reject: fail } = Promise.withResolvers<never>();
  // A failure is reported to whoever waits for it; nobody has to.
  failure.catch(() => undefined);
  const plan = {
    folder,
    ports,
    temporal,
    kubernetesPlan,
    kubernetes,
    simulator,
    providersConfigFile,
    temporalPath: tools.temporal.path,
    temporalDb: options.temporalDb,
    timeScale: options.timeScale,
    healthCheckUrl: pages.probeUrl,
    workerFlags: options.workerFlags ?? [],
    controllerFlags: options.controllerFlags ?? [],
  };
  const processes = stackProcesses(plan, fail);
  const forget = killAtExit(processes);
  const stop = async (): Promise<void> => {
    await temporal.connection.close();
    for (const name of stopOrder) await processes[name].stop();
    forget();
    pages.close();
    leaveStackFolder(folder, lock);
    claimed.release();
  };
  let stopped: Promise<void> | undefined;
  return {
    folder,
    ports,
    processes,
    kubernetes,
    temporal,
    pages,
    providersConfigFile,
    failure,
    temporalCli: temporalCliFor(tools.temporal.path, ports.temporal),
    temporalProgram: tools.temporal.path,
    kubectl: kubectlFor(tools.kubectl.path, kubernetes.kubeconfigs.admin, folder.path),
    simulator: simulatorAccess(simulatorUrl, `http://127.0.0.1:${ports.simulatorAdmin}`, simulator),
    stop: () => (stopped ??= stop()),
  };
}

/** However this process ends, short of kill -9, nothing outlives it. Returns how to undo that. */
function killAtExit(processes: Record<ProcessName, ManagedProcess>): () => void {
  const killAll = (): void => {
    for (const name of stopOrder) {
      const pid = processes[name].pid();
      if (pid !== undefined) signalGroup(pid, 'SIGKILL');
    }
  };
  process.on('exit', killAll);
  return () => process.off('exit', killAll);
}

/** Servers side by side, then the operator's objects, then the operator. */
async function startProcesses(options: StackOptions, stack: Stack): Promise<void> {
  const { processes, kubectl } = stack;
  const gaveUp = new AbortController();
  const signal = AbortSignal.any([options.signal, gaveUp.signal]);
  const start = async (name: ProcessName): Promise<void> => {
    if (signal.aborted) throw abortReason(signal);
    if (options.notStarted?.includes(name) === true) return;
    const startedAt = Date.now();
    await processes[name].start(signal);
    options.log(`${name} is ready (${((Date.now() - startedAt) / 1_000).toFixed(1)} s)`);
  };
  const kubernetes = async (): Promise<void> => {
    await start('etcd');
    await start('kube-apiserver');
    const manifests = ['deploy/crds', 'deploy/base/namespace.yaml', 'deploy/base/rbac'];
    const files = manifests.map((path) => `--filename=${join(checkout, path)}`);
    await kubectl.must(['apply', '--server-side', ...files], { signal });
    await kubectl.must(
      ['wait', '--for=condition=Established', `--filename=${join(checkout, 'deploy/crds')}`],
      { signal },
    );
    await kubectl.must(['apply', '--server-side', '--filename=-'], {
      input: JSON.stringify(secretsOfDefaultNamespace),
      signal,
    });
  };
  await together([kubernetes(), start('temporal'), start('simulator')], gaveUp);
  await together([start('controller'), start('worker')], gaveUp);
}

/** As deploy/samples/namespace.yaml: the samples stand in the namespace `default`. */
const secretsOfDefaultNamespace = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: { name: 'egress-proxies-operator-secrets', namespace: 'default' },
  roleRef: {
    apiGroup: 'rbac.authorization.k8s.io',
    kind: 'ClusterRole',
    name: 'egress-proxies-operator-secrets',
  },
  subjects: [
    { kind: 'ServiceAccount', name: 'worker', namespace: 'egress-proxies-operator-system' },
  ],
};

/** Waits for all; the first failure aborts the others and is the one thrown. */
async function together(work: readonly Promise<void>[], others: AbortController): Promise<void> {
  const first: unknown[] = [];
  await Promise.all(
    work.map((one) =>
      one.catch((error: unknown) => {
        first.push(error);
        others.abort(error);
      }),
    ),
  );
  if (first.length > 0) throw first[0];
}
