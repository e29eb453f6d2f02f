/** The simulated cluster as its admin port shows it: what really stands there, whatever the API tells. */
import { z } from 'zod';
import type { SimulatorAccess } from '../../../deploy/dev/simulator.ts';

const vms = z.array(
  z.object({
    vmid: z.number(),
    node: z.string(),
    running: z.boolean(),
    address: z.string().nullable(),
    config: z.record(z.string(), z.string()),
  }),
);
export type SimulatedVm = z.infer<typeof vms>[number];

const isos = z.array(
  z.object({
    storage: z.string(),
    node: z.string().nullable(),
    name: z.string(),
    size: z.number(),
    userData: z.string().nullable(),
  }),
);
export type SimulatedIso = z.infer<typeof isos>[number];

const tasks = z.array(
  z.object({
    upid: z.string(),
    node: z.string(),
    type: z.string(),
    id: z.string(),
    log: z.array(z.string()),
    running: z.boolean(),
    exitstatus: z.string().optional(),
  }),
);
export type SimulatedTask = z.infer<typeof tasks>[number];

const requests = z.array(
  z.object({
    method: z.string(),
    path: z.string(),
    token: z.string().nullable(),
    status: z.number(),
    answered: z.boolean(),
  }),
);
export type SimulatedRequest = z.infer<typeof requests>[number];

/** Every VM that is not a template. */
export async function simulatedVms(simulator: SimulatorAccess): Promise<SimulatedVm[]> {
  const all = vms.parse(await simulator.admin('GET', '/vms'));
  return all.filter(({ config }) => config['template'] !== '1');
}

/** Every ISO file on every node. */
export async function simulatedIsos(simulator: SimulatorAccess): Promise<SimulatedIso[]> {
  return isos.parse(await simulator.admin('GET', '/isos'));
}

/** Tasks of one type (`qmclone`, `imgcopy`, …), oldest first. */
export async function simulatedTasks(
  simulator: SimulatorAccess,
  type: string,
): Promise<SimulatedTask[]> {
  const all = tasks.parse(await simulator.admin('GET', '/tasks'));
  return all.filter((task) => task.type === type);
}

/** Every request the simulator was sent, oldest first. */
export async function simulatedRequests(simulator: SimulatorAccess): Promise<SimulatedRequest[]> {
  return requests.parse(await simulator.admin('GET', '/requests'));
}

const proxied = z.array(z.object({ vmid: z.number(), line: z.string() }));

/** VMIDs of the VMs whose proxies were asked for that URL. */
export async function servedBy(simulator: SimulatorAccess, url: string): Promise<Set<number>> {
  const seen = proxied.parse(await simulator.admin('GET', '/proxy-requests'));
  return new Set(seen.filter(({ line }) => line === `GET ${url}`).map(({ vmid }) => vmid));
}

/** A fault of the simulator (test/simulator/README.md) for the next request that matches. */
export async function pushFault(
  simulator: SimulatorAccess,
  fault: { method: string; path: string; nth?: number; times?: number; action: object },
): Promise<void> {
  await simulator.admin('POST', '/faults', fault);
}
