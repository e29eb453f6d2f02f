import { dirname, relative } from 'node:path';
import type { Stack } from './stack.ts';
import { temporalNamespace } from './temporalServer.ts';

/** Where a person finds everything in a running stack, a line each. */
export function addressLines(stack: Stack): string[] {
  const { ports, kubernetes, kubectl, folder } = stack;
  const local = (port: number, path = ''): string => `http://127.0.0.1:${port}${path}`;
  return [
    ...programLines([kubectl.program, stack.temporalProgram]),
    `  kubeconfig   export KUBECONFIG=${kubernetes.kubeconfigs.admin}`,
    `  Temporal UI  ${local(ports.temporalUi, `/namespaces/${temporalNamespace}/workflows`)}`,
    `  Temporal     export TEMPORAL_ADDRESS=127.0.0.1:${ports.temporal} TEMPORAL_NAMESPACE=${temporalNamespace}`,
    `  page         ${local(ports.pages)}: try curl -x http://<ip>:3128 ${local(ports.pages)} through a proxy`,
    `  discovery    ${local(ports.discovery, '/v1/proxies')}`,
    `  simulator    https://127.0.0.1:${ports.simulator} (admin ${local(ports.simulatorAdmin)})`,
    `  providers    ${stack.providersConfigFile}: edit it while the worker runs`,
    `  metrics      worker ${local(ports.workerMetrics, '/metrics')}, controller ${local(ports.controllerMetrics, '/metrics')}`,
    `  health       worker ${local(ports.workerHealth, '/readyz')}, controller ${local(ports.controllerHealth, '/readyz')}`,
    `  try          ${kubectl.program} apply -f deploy/samples/proxy.yaml && ${kubectl.program} get px -w`,
    `  logs         ${relative(process.cwd(), folder.logs)}`,
  ];
}

/** Folders already on PATH are not put before others, such as that of this checkout's Node. */
function programLines(programs: readonly string[]): string[] {
  const known = (process.env['PATH'] ?? '').split(':');
  const folders = new Set(programs.map((path) => dirname(path)));
  const missing = [...folders].filter((folder) => !known.includes(folder));
  return missing.length === 0 ? [] : [`  programs     export PATH=${missing.join(':')}:$PATH`];
}
