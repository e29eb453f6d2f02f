import { connect } from 'node:net';
import { join } from 'node:path';
import { answersOk } from './kubernetes.ts';
import type { ProcessSpec } from './managedProcess.ts';
import { checkout } from './stackFolder.ts';
import { temporalNamespace } from './temporalServer.ts';

/** Our own programs as processes of the stack; they run from this checkout's sources. */

const programGraceMs = 30_000;
const readyMs = 60_000;

/** This process's environment without settings meant for other set-ups, plus ours. */
export function programEnvironment(settings: Record<string, string>): NodeJS.ProcessEnv {
  const foreign = /^(PROXY_OPERATOR_|TEMPORAL_|KUBECONFIG$|KUBERNETES_|NODE_TEST_CONTEXT$)/;
  const kept = Object.entries(process.env).filter(([name]) => !foreign.test(name));
  return { ...Object.fromEntries(kept), ...settings };
}

export interface SimulatorPlan {
  port: number;
  adminPort: number;
  /** Made by `initSimulator`. */
  folder: string;
  timeScale: number;
  fixture: string;
}

/** The simulated Proxmox VE. */
export function simulatorSpec(plan: SimulatorPlan): ProcessSpec {
  return {
    name: 'simulator',
    command: process.execPath,
    args: [
      join(checkout, 'test/simulator/main.ts'),
      `--fixture=${plan.fixture}`,
      `--port=${plan.port}`,
      `--admin-port=${plan.adminPort}`,
      `--tls-dir=${plan.folder}`,
      `--time-scale=${plan.timeScale}`,
    ],
    env: programEnvironment({}),
    isReady: async () => (await accepts(plan.port)) && (await accepts(plan.adminPort)),
    readyWithinMs: readyMs,
    stopGraceMs: 5_000,
  };
}

export interface ProgramPlan {
  temporalPort: number;
  kubeconfig: string;
  metricsPort: number;
  healthPort: number;
  /** Further flags, `--name=value`. */
  flags: readonly string[];
}

/** The controller; its readiness is its own: the first sync is done. */
export function controllerSpec(plan: ProgramPlan & { discoveryPort: number }): ProcessSpec {
  return operatorProgram('controller', plan, [`--discovery-port=${plan.discoveryPort}`]);
}

export interface WorkerPlan extends ProgramPlan {
  sdkMetricsPort: number;
  providersConfig: string;
  healthCheckUrl: string;
}

/** The worker; its readiness is its own: it polls for tasks. */
export function workerSpec(plan: WorkerPlan): ProcessSpec {
  return operatorProgram('worker', plan, [
    `--sdk-metrics-port=${plan.sdkMetricsPort}`,
    `--providers-config=${plan.providersConfig}`,
    `--health-check-url=${plan.healthCheckUrl}`,
  ]);
}

function operatorProgram(
  name: 'controller' | 'worker',
  plan: ProgramPlan,
  flags: readonly string[],
): ProcessSpec {
  return {
    name,
    command: process.execPath,
    args: [
      join(checkout, name, 'main.ts'),
      '--bind-address=127.0.0.1',
      `--metrics-port=${plan.metricsPort}`,
      `--health-port=${plan.healthPort}`,
      ...flags,
      ...plan.flags,
    ],
    env: programEnvironment({
      KUBECONFIG: plan.kubeconfig,
      TEMPORAL_ADDRESS: `127.0.0.1:${plan.temporalPort}`,
      TEMPORAL_NAMESPACE: temporalNamespace,
    }),
    isReady: () => answersOk(`http://127.0.0.1:${plan.healthPort}/readyz`),
    readyWithinMs: readyMs,
    stopGraceMs: programGraceMs,
  };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.on('connect', () => socket.destroy() && resolve(true));
    socket.on('error', () => resolve(false));
  });
}
