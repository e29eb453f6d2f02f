import { setTimeout as pause } from 'node:timers/promises';
import { Command } from 'commander';
import { ProxyAgent, request } from 'undici';
import { listSeeds, listVms } from './cluster.ts';
import { UserError, printLine, runProgram } from './program.ts';
import { startStack } from './stack.ts';
import { checkout } from './stackFolder.ts';
import type { Stack } from './stack.ts';
import { runningProxyWorkflows } from './temporalView.ts';
import { temporalNamespace } from './temporalServer.ts';

const sample = 'deploy/samples/proxy.yaml';
const name = 'proxy-sample';
/** A real host needs about a minute; the simulator keeps the proportions and takes less. */
const timeScale = 0.4;
const readyTimeout = '180s';
const goneTimeout = '120s';
const leftoverMs = 15_000;

const startedAt = Date.now();

/** `make demo`: one Proxy from `kubectl apply` to Ready and back to nothing, then everything is stopped. */
const command = new Command('make demo').description(
  'One Proxy from kubectl apply to Ready and back to nothing, on a stack of its own.',
);

runProgram(command, async (signal) => {
  process.chdir(checkout);
  title('Starting Temporal, etcd, kube-apiserver, a simulated Proxmox VE, controller and worker');
  const stack = await startStack({
    name: 'demo',
    timeScale,
    temporalDb: 'memory',
    log: (line) => printLine(`  ${line}`),
    signal,
  }).catch((error: unknown) => {
    throw signal.aborted ? interrupted() : error;
  });
  try {
    // A process that dies in mid-demo is the reason to tell, not the timeout that follows from it.
    await Promise.race([story(stack, signal), stack.failure]);
  } catch (error) {
    if (signal.aborted) throw interrupted();
    await showTrouble(stack);
    throw error;
  } finally {
    title('Stopping everything');
    await stack.stop();
  }
  title('Done: nothing is left running');
  return 0;
});

async function story(stack: Stack, signal: AbortSignal): Promise<void> {
  const kubectl = async (...args: string[]): Promise<void> => {
    printLine(`  $ kubectl ${args.map(quoted).join(' ')}`);
    const output = await stack.kubectl.must(args, { signal });
    printLine(output.trimEnd().replace(/^/gm, '  '));
  };
  const stopWatching = new AbortController();
  const watching = watch(stack, AbortSignal.any([signal, stopWatching.signal]));
  try {
    title('A Proxy is applied, and becomes Ready');
    await kubectl('apply', '-f', sample);
    await stack.kubectl.must(
      ['wait', `px/${name}`, '--for=condition=Ready', `--timeout=${readyTimeout}`],
      { signal },
    );
    title('A request goes through it');
    await useProxy(stack);
    title('What stands in Proxmox VE and in Temporal');
    await showCluster(stack);
    title('The Proxy is deleted');
    printLine('  (drained for 2 seconds instead of 30, to be shorter)');
    await kubectl('patch', 'px', name, '--type=merge', '-p', '{"spec":{"drainSeconds":2}}');
    await kubectl('delete', 'px', name, `--timeout=${goneTimeout}`);
  } finally {
    stopWatching.abort();
    await watching;
  }
  title('What is left');
  await expectNothingLeft(stack);
}

/** The last word after Ctrl-C; by then the stack has been stopped, and the Proxy, its VM and its seed have gone with it. */
function interrupted(): UserError {
  return new UserError(
    'Interrupted: controller, worker, simulator, Temporal, kube-apiserver and etcd are stopped, nothing is left running',
  );
}

/** What a person would look at first when the demo does not go on. */
async function showTrouble(stack: Stack): Promise<void> {
  title('This went wrong');
  const { stdout, stderr } = await stack.kubectl.run(['get', 'px,ph', '-A', '-o', 'wide']);
  printLine((stdout + stderr).trimEnd().replace(/^/gm, '  '));
  printLine(`  Logs: ${stack.folder.logs}`);
}

/** `kubectl get px -w`, a line whenever something else than the age changed. */
async function watch(stack: Stack, signal: AbortSignal): Promise<void> {
  let rest = '';
  let last = '';
  const onStdout = (text: string): void => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const withoutAge = line.replace(/\S+\s*$/, '');
      if (withoutAge !== last) printLine(`  ${clock()}  ${line}`);
      last = withoutAge;
    }
  };
  await stack.kubectl.run(['get', 'px', '-w'], { signal, onStdout }).catch(() => undefined);
}

async function useProxy(stack: Stack): Promise<void> {
  const discovery = `http://127.0.0.1:${stack.ports.discovery}/v1/proxies`;
  const listed = await request(discovery, { headers: { accept: 'text/plain' } });
  const address = (await listed.body.text()).trim();
  printLine(`  discovery lists ${address}`);
  if (!/^\S+:\d+$/.test(address))
    throw new UserError(`${discovery} should list one address, it answered «${address}».`);
  const proxy = new ProxyAgent({ uri: `http://${address}`, proxyTunnel: false });
  const page = await request(stack.pages.pageUrl, { dispatcher: proxy });
  const text = (await page.body.text()).trim();
  await proxy.close();
  printLine(`  GET ${stack.pages.pageUrl} through ${address}: ${page.statusCode} «${text}»`);
  if (page.statusCode !== 200 || text !== stack.pages.sentence)
    throw new UserError('The request through the proxy did not bring the page back.');
}

async function showCluster(stack: Stack): Promise<void> {
  for (const vm of await listVms(stack.simulator))
    printLine(`  VM ${vm.vmid} ${vm.name ?? ''} on ${vm.node}: ${vm.status ?? ''}`);
  for (const seed of await listSeeds(stack.simulator))
    printLine(`  seed ${seed.volid} on ${seed.node}: ${Math.round(seed.size / 1_024)} KiB`);
  for (const workflow of await runningProxyWorkflows(stack.temporal))
    printLine(
      `  workflow ${workflow.workflowId} in namespace ${temporalNamespace}: ${workflow.status}`,
    );
}

/** Throws UserError naming everything that should be gone and is not. */
async function expectNothingLeft(stack: Stack): Promise<void> {
  const deadline = Date.now() + leftoverMs;
  let left = await leftovers(stack);
  // Temporal's list of workflows lags behind a moment.
  while (left.length > 0 && Date.now() < deadline) {
    await pause(250);
    left = await leftovers(stack);
  }
  if (left.length > 0) throw new UserError(`Something is left: ${left.join(', ')}.`);
  printLine('  no Proxy (so no finalizer), no VM, no seed, no running workflow of a Proxy');
}

async function leftovers(stack: Stack): Promise<string[]> {
  const proxies = await stack.kubectl.must(['get', 'px', '-A', '-o', 'name']);
  const vms = await listVms(stack.simulator);
  const seeds = await listSeeds(stack.simulator);
  const workflows = await runningProxyWorkflows(stack.temporal);
  return [
    ...proxies.split('\n').filter((line) => line !== ''),
    ...vms.map((vm) => `VM ${vm.vmid}`),
    ...seeds.map((seed) => seed.volid),
    ...workflows.map((workflow) => `workflow ${workflow.workflowId}`),
  ];
}

function title(text: string): void {
  printLine(`${clock()}  ${text}`);
}

function clock(): string {
  return `${((Date.now() - startedAt) / 1_000).toFixed(1).padStart(5)} s`;
}

function quoted(argument: string): string {
  return /^[\w./=:-]+$/.test(argument) ? argument : `'${argument}'`;
}
