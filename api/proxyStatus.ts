/** `status` of a Proxy as stored: what `publishStatus` writes (workflows/contract/proxy.ts) plus the times of conditions. */
import { z } from 'zod';
import { phases, vmPowers } from '../workflows/contract/proxy.ts';
import { conditionsSchema } from './conditions.ts';
import { kubernetes } from './validation.ts';

/** Absent in the object, `null` once parsed. */
const text = (description: string) => z.string().nullable().default(null).describe(description);
const integer = (description: string) => z.int().nullable().default(null).describe(description);

const leftover = z.object({
  provider: z.string().describe('Provider the VMID is on.'),
  vmid: z.int().describe('VMID that was given up.'),
  node: z.string().describe('Node the VM is on.'),
  upid: z.string().default('').describe('Task that left it behind, when it is known.'),
  reason: z.string().describe('Why it was given up, and the line that clears it.'),
});

const replacement = z.object({
  provider: text('Provider the new VM is on.'),
  vmid: z.int().describe('VMID of the new VM.'),
  node: z.string().describe('Node of the new VM.'),
  vmName: z.string().describe('Name of the new VM.'),
  ip: text('Address of the new VM, once known.'),
  specHash: z.string().describe('Hash of the spec the new VM is made from.'),
});

/** `status` with absent fields as `null`, lists as `[]`. */
export const proxyStatusSchema = z
  .object({
    phase: z.enum(phases).nullable().default(null).describe('Where the Proxy stands in its life.'),
    ip: text('Address of the VM that serves, or of the External proxy.'),
    healthy: z
      .boolean()
      .nullable()
      .default(null)
      .describe('Result of the probes; absent before the first one.'),
    provider: text('Provider the VM is on.'),
    providerID: text('vms/<vmid>/<name> of the VM that serves.'),
    vmid: integer('VMID of the VM that serves.'),
    node: text('Node the VM runs on.'),
    power: z
      .enum(vmPowers)
      .nullable()
      .default(null)
      .describe('Power of the VM as last looked at; unreachable: its node does not answer.'),
    vmName: text('Name of the VM on Proxmox.'),
    workflowID: text('ID of the Temporal workflow that looks after this Proxy.'),
    specHash: text('Hash of the spec the serving VM was made from.'),
    desiredSpecHash: text('Hash of the spec that is wanted; differs while a replacement is due.'),
    observedGeneration: integer('Last generation the workflow has accepted.'),
    message: z
      .string()
      .default('')
      .describe('What is going on, what is waited for, and the remedy.'),
    handled: z
      .object({
        retry: text('Value of the annotation egress-proxies.io/retry that was acted on.'),
        forceDelete: text(
          'Value of the annotation egress-proxies.io/force-delete that was acted on.',
        ),
      })
      .prefault({})
      .describe('Annotations that were acted on; each value is acted on once.'),
    everReady: z.boolean().default(false).describe('Whether a VM of this Proxy was ever Ready.'),
    leftovers: kubernetes(z.array(leftover), { 'x-kubernetes-list-type': 'atomic' })
      .default([])
      .describe('VMIDs given up because of a lock that no API token can clear.'),
    replacement: replacement
      .nullable()
      .default(null)
      .describe('The VM being made while another one serves.'),
    timings: z
      .record(z.string(), z.number())
      .default({})
      .describe('Seconds each step of the last provisioning took.'),
    conditions: conditionsSchema.describe(
      'Ready, Provisioned, Healthy, Reconciling and Stalled; AgentReachable once the agent was asked, CloudInitAvailable while it is not.',
    ),
  })
  .describe('What the operator found and did; written by the operator only.');
