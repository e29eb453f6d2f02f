import { relative } from 'node:path';
import type { Stack } from './stack.ts';
import { temporalNamespace } from './temporalServer.ts';

/** Where a person finds everything in a running stack, a line each. */
export function addressLines(stack: Stack): string[] {
  const { ports, kubernetes, kubectl, folder } = stack;
  const local = (port: number, path = ''): string => `http://127.0.0.1:${port}${path}`;
  return [
    `  kubeconfig   export KUBECONFIG=${kubernetes.kubeconfigs.admin}`,
    `  kubectl      ${kubectl.program}`,
    `  Temporal UI  ${local(ports.temporalUi, `/namespaces/${temporalNamespace}/workflows`)}`,
    `  temporal     ${stack.temporalProgram}`,
    `  Temporal     export TEMPORAL_ADDRESS=127.0.0.1:${ports.temporal} TEMPORAL_NAMESPACE=${temporalNamespace}`,
    `  page         ${local(ports.pages)}: try curl -x http://<ip>:3128 ${local(ports.pages)} through a proxy`,
    `  discovery    ${local(ports.discovery, '/v1/proxies')}`,
    `  simulator    https://127.0.0.1:${ports.simulator} (admin ${local(ports.simulatorAdmin)})`,
    `  metrics      worker ${local(ports.workerMetrics, '/metrics')}, controller ${local(ports.controllerMetrics, '/metrics')}`,
    `  try          ${kubectl.program} apply -f deploy/samples/proxy.yaml && ${kubectl.program} get px -w`,
    `  logs         ${relative(process.cwd(), folder.logs)}`,
  ];
}
