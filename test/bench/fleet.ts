/** Many Proxies on one stack: made by the operator itself, and known to stand still. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { KubernetesClient } from '../../activities/kubernetes/client.ts';
import { proxyWorkflowId } from '../../workflows/contract/messages.ts';
import { discoverText, managedSpec, proxyManifest } from '../system/support/proxies.ts';
import type { SystemStack } from '../system/support/stack.ts';
import { proxiesPath } from './administrator.ts';

/** So many are being made at a time: enough to keep the operator busy, too few for it to be late with anything. */
const atOnce = 40;
/** Without another Ready one for so long, something is wrong. */
const patienceMs = 300_000;
/** Workflows asked at the same time. */
const asked = 50;

const proxyList = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), uid: z.string() }),
      status: z.object({ phase: z.string().optional() }).optional(),
    }),
  ),
});

/** The Proxies of a stack. */
export interface Fleet {
  stack: SystemStack;
  kubernetes: KubernetesClient;
}

/** Applies Proxies until there are `size`, on both nodes in turn, and returns when all are Ready. */
export async function grow(fleet: Fleet, size: number): Promise<void> {
  let applied = (await list(fleet)).items.length;
  let ready = 0;
  while (ready < size) {
    while (applied < Math.min(size, ready + atOnce)) await apply(fleet, (applied += 1));
    ready = await untilMoreAreReady(fleet, ready, size);
  }
}

/** Returns how many are; throws with the phases of the others when no further one becomes Ready. */
async function untilMoreAreReady(fleet: Fleet, than: number, size: number): Promise<number> {
  let ready = than;
  try {
    await fleet.stack.eventually(async () => {
      // Discovery is asked: a list of a thousand objects every moment would keep the machine busy.
      ready = (await discoverText(fleet.stack)).split('\n').filter((line) => line !== '').length;
      return ready > than;
    }, patienceMs);
  } catch (error) {
    const phases = (await list(fleet)).items.map(({ status }) => status?.phase ?? 'none');
    const others = phases.filter((phase) => phase !== 'Ready').join(', ');
    const text = `${ready} of ${size} Proxies are Ready and no more become so; the others: ${others}`;
    throw new Error(text, { cause: error });
  }
  return ready;
}

async function apply({ kubernetes }: Fleet, number: number): Promise<void> {
  const name = `idle-${number}`;
  const zone = number % 2 === 0 ? 'pv1-2' : 'pv1-1';
  const placement = { zone, machineType: 'small', image: 'debian-13' };
  const body: unknown = JSON.parse(proxyManifest(name, managedSpec({ placement })));
  const answer = await kubernetes.send({ method: 'POST', path: proxiesPath, body });
  if (answer.status === 201) return;
  throw new Error(`POST of ${name} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
}

async function list({ kubernetes }: Fleet): Promise<z.infer<typeof proxyList>> {
  const { status, body } = await kubernetes.send({ method: 'GET', path: proxiesPath });
  if (status !== 200) throw new Error(`GET ${proxiesPath} answered ${status}`);
  return proxyList.parse(body);
}

/**
 * Waits until no workflow of a Proxy has a step or a decision before it and none has grown since the look before. Returns
 * the number of events in all their histories.
 */
export async function untilStill(fleet: Fleet): Promise<number> {
  const { items } = await list(fleet);
  const ids = items.map(({ metadata }) => proxyWorkflowId(metadata.uid));
  let before = -1;
  await fleet.stack.eventually(async () => {
    const { events, busy } = await look(fleet, ids);
    const still = busy === 0 && events === before;
    before = events;
    if (!still) throw new Error(`${busy} of ${ids.length} workflows have something to do`);
  }, patienceMs);
  return before;
}

async function look(
  { stack }: Fleet,
  ids: readonly string[],
): Promise<{ events: number; busy: number }> {
  let [events, busy] = [0, 0];
  for (let from = 0; from < ids.length; from += asked) {
    const some = ids.slice(from, from + asked);
    const seen = await Promise.all(
      some.map((id) => stack.temporal.workflow.getHandle(id).describe()),
    );
    for (const { raw, historyLength } of seen) {
      events += historyLength;
      const idle = (raw.pendingActivities?.length ?? 0) === 0 && !raw.pendingWorkflowTask;
      busy += idle ? 0 : 1;
    }
  }
  return { events, busy };
}

/** Resident memory of a process of the stack, MiB. Linux only. */
export function residentMiB(stack: SystemStack, name: 'worker' | 'controller'): number {
  const pid = stack.processes[name].pid();
  if (pid === undefined) throw new Error(`the ${name} does not run`);
  const [, kiB] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  if (kiB === undefined) throw new Error(`/proc/${pid}/status of the ${name} names no VmRSS`);
  return Number(kiB) / 1024;
}
