import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import { apiserverSpec, etcdSpec } from './kubernetes.ts';
import type { KubernetesPlan } from './kubernetes.ts';
import type { KubernetesFiles } from './kubernetesFiles.ts';
import { managedProcess } from './managedProcess.ts';
import type { ManagedProcess, ProcessSpec } from './managedProcess.ts';
import type { UserError } from './program.ts';
import { controllerSpec, programEnvironment, simulatorSpec, workerSpec } from './programs.ts';
import type { SimulatorFiles } from './simulator.ts';
import type { ProcessName, StackFolder } from './stackFolder.ts';
import type { StackPorts } from './stackPorts.ts';
import { temporalSpec } from './temporalServer.ts';

/** What the processes of a stack are made of. */
export interface ProcessPlan {
  folder: StackFolder;
  ports: StackPorts;
  temporalPath: string;
  temporalDb: 'file' | 'memory';
  temporal: Client;
  kubernetesPlan: KubernetesPlan;
  kubernetes: KubernetesFiles;
  simulator: SimulatorFiles;
  timeScale: number;
  providersConfigFile: string;
  healthCheckUrl: string;
  workerFlags: readonly string[];
  controllerFlags: readonly string[];
}

/** Every process of a stack, none started. `onDeath` is told of one that ends by itself. */
export function stackProcesses(
  plan: ProcessPlan,
  onDeath: (error: UserError) => void,
): Record<ProcessName, ManagedProcess> {
  const { ports, kubernetes } = plan;
  const managed = (spec: ProcessSpec): ManagedProcess => managedProcess(spec, plan.folder, onDeath);
  const temporal = temporalSpec(
    {
      temporalPath: plan.temporalPath,
      port: ports.temporal,
      uiPort: ports.temporalUi,
      httpPort: ports.temporalHttp,
      metricsPort: ports.temporalMetrics,
      dbFile: plan.temporalDb === 'file' ? join(plan.folder.path, 'temporal.db') : undefined,
      env: programEnvironment({}),
    },
    plan.temporal,
  );
  const simulator = simulatorSpec({
    port: ports.simulator,
    adminPort: ports.simulatorAdmin,
    folder: plan.simulator.folder,
    timeScale: plan.timeScale,
    fixture: plan.simulator.fixture,
  });
  const controller = controllerSpec({
    temporalPort: ports.temporal,
    kubeconfig: kubernetes.kubeconfigs.controller,
    metricsPort: ports.controllerMetrics,
    healthPort: ports.controllerHealth,
    discoveryPort: ports.discovery,
    flags: plan.controllerFlags,
  });
  const worker = workerSpec({
    temporalPort: ports.temporal,
    kubeconfig: kubernetes.kubeconfigs.worker,
    metricsPort: ports.workerMetrics,
    healthPort: ports.workerHealth,
    sdkMetricsPort: ports.workerSdkMetrics,
    providersConfig: plan.providersConfigFile,
    healthCheckUrl: plan.healthCheckUrl,
    flags: plan.workerFlags,
  });
  return {
    etcd: managed(etcdSpec(plan.kubernetesPlan)),
    'kube-apiserver': managed(apiserverSpec(plan.kubernetesPlan, kubernetes)),
    temporal: managed(temporal),
    simulator: managed(simulator),
    controller: managed(controller),
    worker: managed(worker),
  };
}
