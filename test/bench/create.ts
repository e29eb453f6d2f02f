/**
 * `npm run bench:create [-- --count=10 --time-scale=1]`: creates and deletes Proxies one after the other on a whole
 * private stack, and tells what the operator adds to what Proxmox and the guest take (docs/testing.md, Benchmarks).
 */
import { cpus, loadavg } from 'node:os';
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { parse } from 'yaml';
import { z } from 'zod';
import type { KubernetesClient } from '../../activities/kubernetes/client.ts';
import { factor, wholeNumber } from '../../deploy/dev/commandLine.ts';
import { printLine, runProgram } from '../../deploy/dev/program.ts';
import { startStack, type SystemStack } from '../system/support/stack.ts';
import { proxyWorkflowId } from '../../workflows/contract/messages.ts';
import { administrator, proxiesPath } from './administrator.ts';
import { measure, requestSchema, taskSchema, type Measured, type SeenRequest } from './life.ts';
import { report } from './report.ts';

const sampleFile = new URL('../../deploy/samples/proxy.yaml', import.meta.url);
const sampleSchema = z.looseObject({ spec: z.looseObject({}) });
const vmsSchema = z.array(
  z.object({
    vmid: z.number(),
    startedAt: z.number().nullable(),
    agentUpAt: z.number().nullable(),
    config: z.record(z.string(), z.string()),
  }),
);

const command = new Command('npm run bench:create --')
  .description('What the operator adds to what Proxmox VE and the guest take for a create.')
  .option('--count <n>', 'Proxies, one after the other', wholeNumber(), 10)
  .option('--time-scale <x>', 'of what Proxmox VE and guests take', factor, 1);

runProgram(command, async () => {
  const { count, timeScale } = command.opts<{ count: number; timeScale: number }>();
  printLine(`Starting a stack of its own at ${timeScale} × real times …`);
  const stack = await startStack({ timeScale, temporalDb: 'file' });
  try {
    const kubernetes = administrator(stack);
    printLine('One create and delete to warm up, not counted …');
    await live(stack, kubernetes, 'bench-warm-up');
    const loadBefore = loadavg()[0] ?? 0;
    const lives: Measured[] = [];
    for (let number = 1; number <= count; number += 1) {
      const life = await live(stack, kubernetes, `bench-${number}`);
      lives.push(life);
      printLine(`${number} of ${count}: overhead ${(life.overheadMs / 1_000).toFixed(2)} s`);
    }
    await kubernetes.close();
    const circumstances = {
      timeScale,
      cpus: cpus().length,
      loadBefore,
      loadAfter: loadavg()[0] ?? 0,
    };
    for (const line of ['', ...report(lives, circumstances)]) printLine(line);
  } finally {
    await stack.stop();
  }
  return 0;
});

/** One Proxy from nothing to Ready and back. */
async function live(
  stack: SystemStack,
  kubernetes: KubernetesClient,
  name: string,
): Promise<Measured> {
  await stack.simulator.admin('DELETE', '/requests');
  const body = manifest(name);
  const createdAtMs = Date.now();
  const { status, body: answer } = await kubernetes.send({
    method: 'POST',
    path: proxiesPath,
    body,
  });
  if (status !== 201)
    throw new Error(`POST of ${name} answered ${status}: ${JSON.stringify(answer)}`);
  await stack.kubectl('wait', `px/${name}`, '--for=condition=Ready', '--timeout=300s');
  const boot = await bootOf(stack, name);
  const workflowId = proxyWorkflowId(uidOf(answer));
  await untilParked(stack, workflowId);
  const createRequests = await requests(stack);
  const deletedAtMs = Date.now();
  await stack.kubectl('delete', `px/${name}`, '--timeout=120s');
  await stack.temporal.workflow.getHandle(workflowId).result();
  return measure({
    createdAtMs,
    deletedAtMs,
    boot,
    history: await stack.history(workflowId),
    tasks: z.array(taskSchema).parse(await stack.simulator.admin('GET', '/tasks')),
    createRequests,
    deleteRequests: (await requests(stack)).slice(createRequests.length),
  });
}

/** The sample, without a drain: waiting for clients is no overhead. */
function manifest(name: string): object {
  const { spec, ...sample } = sampleSchema.parse(parse(readFileSync(sampleFile, 'utf8')));
  return { ...sample, metadata: { name }, spec: { ...spec, drainSeconds: 0 } };
}

function uidOf(object: unknown): string {
  return z.object({ metadata: z.object({ uid: z.string() }) }).parse(object).metadata.uid;
}

/** When the VM's QEMU ran and when its agent began to answer. */
async function bootOf(stack: SystemStack, name: string): Promise<{ fromMs: number; toMs: number }> {
  const vms = vmsSchema.parse(await stack.simulator.admin('GET', '/vms'));
  const vm = vms.find(({ config }) => config['name']?.startsWith(`proxy-${name}-`));
  if (!vm || vm.startedAt === null || vm.agentUpAt === null) {
    throw new Error(`the simulator shows no booted VM of ${name}`);
  }
  return { fromMs: vm.startedAt, toMs: vm.agentUpAt };
}

async function requests(stack: SystemStack): Promise<SeenRequest[]> {
  return z.array(requestSchema).parse(await stack.simulator.admin('GET', '/requests'));
}

/** Nothing is under way any more, so what comes next belongs to the delete. */
async function untilParked(stack: SystemStack, workflowId: string): Promise<void> {
  await stack.eventually(async () => {
    const { raw } = await stack.temporal.workflow.getHandle(workflowId).describe();
    return (raw.pendingActivities?.length ?? 0) === 0 && !raw.pendingWorkflowTask;
  }, 10_000);
}
