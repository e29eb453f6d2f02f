import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { UserError } from './program.ts';
import type { Stack } from './stack.ts';

/** A situation worth a picture, and the page of Temporal's UI that shows it. */
export interface Scene {
  /** In `docs/images`. */
  file: string;
  /** The Proxy it is about: several scenes stand beside each other on one stack. */
  proxy: string;
  /** Brings the situation about, and returns when Temporal shows it. */
  prepare(stack: Stack, signal: AbortSignal): Promise<void>;
  /** Texts that the page must show before its picture is taken. */
  shows: readonly string[];
  /** Of the picture, in pixels: as far down as there is something to see. */
  height: number;
}

const readyTimeout = '180s';
const blockedMs = 120_000;
const pollMs = 200;

/** In the order in which they are brought about. */
export const scenes: readonly Scene[] = [
  {
    file: 'healthy.png',
    proxy: 'egress-1',
    prepare: (stack, signal) => becomeReady(stack, 'egress-1', signal),
    shows: ['— Ready', 'pollAgent'],
    height: 740,
  },
  {
    file: 'stuckClone.png',
    proxy: 'egress-2',
    prepare: async (stack, signal) => {
      await stack.simulator.admin('POST', '/faults', {
        method: 'POST',
        path: '/clone$',
        name: 'proxy-egress-2-',
        action: { kind: 'task', hang: true },
      });
      await apply(stack, 'egress-2', signal);
      await untilStatus(stack, 'egress-2', signal, ({ message }) => message.includes('(task UPID'));
    },
    shows: ['— Provisioning', 'awaitTask', 'Task: UPID:'],
    height: 870,
  },
  {
    file: 'blockedDeletion.png',
    proxy: 'egress-3',
    prepare: async (stack, signal) => {
      await becomeReady(stack, 'egress-3', signal);
      const { vmid } = await statusOf(stack, 'egress-3', signal);
      await stack.simulator.admin('POST', `/vms/${vmid}/config`, { protection: '1' });
      await stack.kubectl.must(['delete', 'px', 'egress-3', '--wait=false'], { signal });
      await untilStatus(stack, 'egress-3', signal, ({ message }) =>
        message.includes('--protection 0'),
      );
    },
    shows: ['— Deleting', '--protection 0', 'forceDelete'],
    height: 1040,
  },
];

async function becomeReady(stack: Stack, name: string, signal: AbortSignal): Promise<void> {
  await apply(stack, name, signal);
  const args = ['wait', `px/${name}`, '--for=condition=Ready', `--timeout=${readyTimeout}`];
  await stack.kubectl.must(args, { signal });
}

async function apply(stack: Stack, name: string, signal: AbortSignal): Promise<void> {
  const manifest = {
    apiVersion: 'egress-proxies.io/v1alpha1',
    kind: 'Proxy',
    metadata: { name, namespace: 'default' },
    spec: {
      provider: 'proxmox-local',
      placement: { zone: 'pv1-1', machineType: 'small', image: 'debian-13' },
      cloudInit: '#cloud-config\npackages: [squid]\n',
      drainSeconds: 0,
    },
  };
  const input = JSON.stringify(manifest);
  await stack.kubectl.must(['apply', '--server-side', '-f', '-'], { input, signal });
}

const shownStatus = z.object({
  workflowID: z.string().default(''),
  vmid: z.number().nullish(),
  message: z.string().default(''),
});
type ShownStatus = z.output<typeof shownStatus>;

/** What its status says about a Proxy in the namespace `default`; empty as long as it has none. */
export async function statusOf(
  stack: Stack,
  name: string,
  signal: AbortSignal,
): Promise<ShownStatus> {
  const text = await stack.kubectl.must(['get', 'px', name, '-o', 'json'], { signal });
  const { status } = z.object({ status: shownStatus.optional() }).parse(JSON.parse(text));
  return status ?? shownStatus.parse({});
}

async function untilStatus(
  stack: Stack,
  name: string,
  signal: AbortSignal,
  holds: (status: ShownStatus) => boolean,
): Promise<void> {
  const deadline = Date.now() + blockedMs;
  for (;;) {
    const status = await statusOf(stack, name, signal);
    if (holds(status)) return;
    if (Date.now() > deadline)
      throw new UserError(`${name} is not as its picture wants it: ${JSON.stringify(status)}`);
    await pause(pollMs, undefined, { signal });
  }
}
