/** Histories of the real thing: Temporal's own server, the controller's starts and signals, the worker's steps. */
import { readFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { startStack, type SystemStack } from '../../system/support/stack.ts';
import { probesWorkflowId, proxyWorkflowId } from '../../../workflows/contract/messages.ts';
import type { Recording } from '../recordedStory.ts';

const timeScale = 0.1;
const slowMs = 120_000;
const sampleFile = new URL('../../../deploy/samples/proxy.yaml', import.meta.url);
const sampleSchema = z.looseObject({
  metadata: z.object({ name: z.string() }),
  spec: z.looseObject({}),
});
const tasksSchema = z.array(z.object({ type: z.string(), running: z.boolean() }));

/** The sample under another name, and without a drain. */
function manifest(name: string): string {
  const { spec, ...sample } = sampleSchema.parse(parse(readFileSync(sampleFile, 'utf8')));
  return stringify({ ...sample, metadata: { name }, spec: { ...spec, drainSeconds: 0 } });
}

async function onStack(work: (stack: SystemStack) => Promise<void>): Promise<void> {
  const stack = await startStack({ timeScale, temporalDb: 'memory' });
  try {
    await work(stack);
  } finally {
    await stack.stop();
  }
}

/** From `kubectl apply` to nothing; `meanwhile` happens once the object is there. Returns the workflow's ID. */
async function liveAndDie(
  stack: SystemStack,
  name: string,
  meanwhile: () => Promise<void> = () => Promise.resolve(),
): Promise<string> {
  await stack.apply(manifest(name));
  await meanwhile();
  await stack.kubectl('wait', `px/${name}`, '--for=condition=Ready', '--timeout=120s');
  const uid = await stack.kubectl('get', `px/${name}`, '-o', 'jsonpath={.metadata.uid}');
  await stack.kubectl('delete', `px/${name}`, '--timeout=60s');
  const workflowId = proxyWorkflowId(uid);
  await stack.temporal.workflow.getHandle(workflowId).result();
  return workflowId;
}

async function clones(stack: SystemStack): Promise<boolean> {
  const tasks = tasksSchema.parse(await stack.simulator.admin('GET', '/tasks'));
  return tasks.some(({ type, running }) => type === 'qmclone' && running);
}

export const stackRecordings: Record<string, Recording> = {
  createAndDeleteOnStack: (keep, name) =>
    onStack(async (stack) => {
      const workflowId = await liveAndDie(stack, 'proxy-sample');
      keep(name, await stack.history(workflowId));
      keep('probesOnStack', await stack.history(probesWorkflowId));
    }),
  adoptedAfterCrash: (keep, name) =>
    onStack(async (stack) => {
      // The simulator lets the clone of a VM of this name take a minute more (of its own time).
      const workflowId = await liveAndDie(stack, 'demo-clone-slow', async () => {
        await stack.eventually(() => clones(stack), slowMs);
        await stack.crash('worker');
        await stack.start('worker');
      });
      keep(name, await stack.history(workflowId));
    }),
};
