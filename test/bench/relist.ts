/**
 * `npm run bench:relist [-- --sizes=200,2000 --lists=5 --cloud-init-kib=0 --page-size=500]`: what a full list of unchanged
 * Proxies costs the controller, at a real etcd and kube-apiserver (docs/testing.md, Benchmarks).
 */
import { cpus, loadavg } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { KubeConfig } from '@kubernetes/client-node';
import { Command } from 'commander';
import { pino } from 'pino';
import {
  createKubernetesClient,
  type KubernetesClient,
} from '../../activities/kubernetes/client.ts';
import { proxyPageSize } from '../../activities/kubernetes/proxyList.ts';
import { startController } from '../../controller/controller.ts';
import { wholeNumber, wholeNumbers } from '../../deploy/dev/commandLine.ts';
import { printLine, runProgram, UserError } from '../../deploy/dev/program.ts';
import { eventually } from '../support/eventually.ts';
import { startApiServer, type ApiServer } from '../system/support/apiserver.ts';
import { startByteCounter } from './byteCounter.ts';
import { CountingDesk, countingClient, proxyUids, type ListTimes } from './relistCounters.ts';
import { relistReport, type RelistCost } from './relistReport.ts';

const crds = fileURLToPath(new URL('../../deploy/crds', import.meta.url));
const proxiesPath = '/apis/egress-proxies.io/v1alpha1/namespaces/default/proxies';
const createdAtOnce = 16;
/** So that lists come one after the other; the rest is the controller's own. */
const betweenListsMs = 2_000;

interface Options {
  sizes: number[];
  lists: number;
  cloudInitKib: number;
  pageSize: number;
}

interface Bench extends Omit<Options, 'sizes'> {
  server: ApiServer;
  admin: KubernetesClient;
}

const command = new Command('npm run bench:relist --')
  .description('What a full list of unchanged Proxies costs the controller.')
  .option(
    '--sizes <n,…>',
    'so many Proxies, one size after the other',
    wholeNumbers(),
    [200, 2_000],
  )
  .option('--lists <n>', 'lists of each size', wholeNumber(), 5)
  .option('--cloud-init-kib <n>', 'cloud-init of each Proxy', wholeNumber(0, 250), 0)
  .option('--page-size <n>', 'Proxies in one answer', wholeNumber(), proxyPageSize);

runProgram(command, async () => {
  if (globalThis.gc === undefined) throw new UserError('Start it with node --expose-gc.');
  const { sizes, ...options } = command.opts<Options>();
  printLine('Starting etcd and kube-apiserver …');
  const server = await startApiServer();
  const admin = createKubernetesClient(configOf(server.files.kubeconfigs.admin));
  const bench: Bench = {
    server,
    admin,
    ...options,
  };
  try {
    await server.kubectl.must(['apply', '-f', crds]);
    await eventually(async () => (await proxyUids(admin)).length === 0, 60_000, 200);
    const loadBefore = loadavg()[0] ?? 0;
    const costs: RelistCost[] = [];
    for (const size of sizes) costs.push(await costAt(bench, size));
    const what =
      bench.cloudInitKib === 0 ? 'External' : `Managed, ${bench.cloudInitKib} KiB of cloud-init each`; // prettier-ignore
    const circumstances =
      `Proxies: ${what}; pages of ${bench.pageSize}; ${bench.lists} lists each; ` +
      `${cpus().length} CPUs, load ${loadBefore.toFixed(1)} before and ${(loadavg()[0] ?? 0).toFixed(1)} after. Medians:`;
    for (const line of ['', ...relistReport(costs, circumstances)]) printLine(line);
  } finally {
    await admin.close();
    await server.stop();
  }
  return 0;
});

/** A controller started afresh over so many Proxies, all of them accepted and each with its run. */
async function costAt(bench: Bench, size: number): Promise<RelistCost> {
  printLine(`Creating Proxies until there are ${size} …`);
  await grow(bench, size);
  const counter = await startByteCounter(new URL(bench.server.files.url));
  const client = createKubernetesClient(
    configOf(bench.server.files.kubeconfigs.admin, `https://127.0.0.1:${counter.port}`),
  );
  const times: ListTimes[] = [];
  const desk = new CountingDesk(await proxyUids(bench.admin));
  const startedMs = performance.now();
  const controller = await startController({
    kubernetes: countingClient(client, counter, times),
    desk,
    log: pino({ level: 'warn' }),
    host: '127.0.0.1',
    ports: { metrics: 0, health: 0, discovery: 0 },
    pace: { pageSize: bench.pageSize, fullListMs: betweenListsMs, overdueMs: 0, steadyMs: 0 },
  });
  try {
    await eventually(() => times.length >= 1 && times[0]?.ended === true, 120_000);
    const readyMs = performance.now() - startedMs;
    const delays = monitorEventLoopDelay({ resolution: 5 });
    delays.enable();
    const [cpuBefore, listsBefore] = [process.cpuUsage(), times.length];
    const wanted = 1 + bench.lists;
    await eventually(() => times.filter(({ ended }) => ended).length >= wanted, 600_000, 50);
    delays.disable();
    const cpu = process.cpuUsage(cpuBefore);
    globalThis.gc?.();
    const { heapUsed, rss } = process.memoryUsage();
    return {
      proxies: size,
      readyMs,
      lists: times.slice(1, wanted),
      cpuMs: (cpu.user + cpu.system) / 1_000 / Math.max(1, times.length - listsBefore),
      blockedMs: delays.max / 1e6,
      heapMiB: heapUsed / 2 ** 20,
      residentMiB: rss / 2 ** 20,
      starts: desk.starts,
      signals: desk.signals,
      secondsUp: (performance.now() - startedMs) / 1_000,
    };
  } finally {
    await controller.stop();
    await client.close();
    await counter.stop();
  }
}

async function grow({ admin, cloudInitKib }: Bench, size: number): Promise<void> {
  let next = (await proxyUids(admin)).length;
  const create = async (): Promise<void> => {
    while (next < size) {
      const name = `bench-${next++}`;
      await must(admin, 'POST', proxiesPath, manifest(name, cloudInitKib));
      await must(admin, 'PATCH', `${proxiesPath}/${name}/status`, { status });
    }
  };
  await Promise.all(Array.from({ length: createdAtOnce }, create));
}

/** As the operator writes it for a Proxy that serves. */
const status = {
  phase: 'Ready',
  ip: '192.0.2.7',
  healthy: true,
  observedGeneration: 1,
  specHash: 'a'.repeat(64),
  desiredSpecHash: 'a'.repeat(64),
  everReady: true,
  message: 'requests go through the proxy',
  workflowID: 'proxy-00000000-0000-4000-8000-000000000000',
};

function manifest(name: string, cloudInitKib: number): object {
  const spec =
    cloudInitKib === 0
      ? { mode: 'External', address: '192.0.2.7' }
      : {
          provider: 'home',
          placement: { machineType: 'small', image: 'debian-13' },
          cloudInit: `#cloud-config\n# ${'x'.repeat(cloudInitKib * 1_024 - 20)}\n`,
        };
  return { apiVersion: 'egress-proxies.io/v1alpha1', kind: 'Proxy', metadata: { name }, spec };
}

async function must(
  client: KubernetesClient,
  method: 'POST' | 'PATCH',
  path: string,
  body: object,
): Promise<void> {
  const answer = await client.send({ method, path, body });
  if (answer.status < 300) return;
  throw new Error(`${method} ${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
}

/** A kubeconfig's current context, with another address for the server when one is given. */
function configOf(file: string, server?: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromFile(file);
  if (server === undefined) return config;
  const moved = new KubeConfig();
  const [cluster, user] = [config.getCurrentCluster(), config.getCurrentUser()];
  if (!cluster || !user) throw new Error(`${file} names no cluster or no user`);
  moved.loadFromClusterAndUser({ ...cluster, server }, user);
  return moved;
}
