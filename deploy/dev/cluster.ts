import { z } from 'zod';
import type { SimulatorAccess } from './simulator.ts';

/** What stands on the simulated cluster, asked through its API as an administrator would. */

const vmRows = z.object({
  data: z.array(
    z.object({
      vmid: z.number(),
      node: z.string(),
      name: z.string().optional(),
      status: z.string().optional(),
      template: z.number().optional(),
    }),
  ),
});
export type VmRow = z.infer<typeof vmRows>['data'][number];

const nodeRows = z.object({ data: z.array(z.object({ node: z.string() })) });
const volumeRows = z.object({ data: z.array(z.object({ volid: z.string(), size: z.number() })) });

export interface SeedRow {
  node: string;
  volid: string;
  /** Bytes. */
  size: number;
}

const seedStorage = 'proxy-seeds';

/** Every VM that is not a template, by VMID. */
export async function listVms(simulator: SimulatorAccess): Promise<VmRow[]> {
  const { data } = vmRows.parse(await simulator.get('/cluster/resources?type=vm'));
  return data.filter((row) => row.template !== 1).sort((a, b) => a.vmid - b.vmid);
}

/** Every ISO file of the seed storage, node by node. */
export async function listSeeds(simulator: SimulatorAccess): Promise<SeedRow[]> {
  const { data: nodes } = nodeRows.parse(await simulator.get('/nodes'));
  const seeds: SeedRow[] = [];
  for (const { node } of nodes) {
    const path = `/nodes/${node}/storage/${seedStorage}/content?content=iso`;
    const { data } = volumeRows.parse(await simulator.get(path));
    seeds.push(...data.map((row) => ({ node, ...row })));
  }
  return seeds;
}
