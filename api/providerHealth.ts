/** The ProviderHealth object (design §2): what the operator last saw of one provider. Written by the operator only. */
import { z } from 'zod';
import { conditionsSchema } from './conditions.ts';
import { kubernetes } from './validation.ts';

/** As in the CRD; `plural` is part of every path. */
export const providerHealthKind = 'ProviderHealth';
export const providerHealthPlural = 'providerhealths';

const time = kubernetes(z.string(), { format: 'date-time' });

const target = z.object({
  name: z.string().describe('Node that was checked.'),
  address: z.string().describe('URL it was checked through.'),
  ready: z.boolean().describe('Whether VMs can be made there now.'),
  reason: z
    .string()
    .describe('Reachable, or why the target is not ready; docs/errors.md explains each reason.'),
  message: z.string().default('').describe('What Proxmox answered, and what to look at.'),
  latencyMs: z.int().nullable().default(null).describe('How long the check took.'),
  lastChecked: time.nullable().default(null).describe('When the target was last checked.'),
  lastTransition: time.describe('When ready last changed.'),
  details: z
    .record(z.string(), z.string())
    .default({})
    .describe('Facts the check met: version, free space, templates found; never a secret.'),
});

/** Too many VMs of the provider are missing at once (design §7): nothing is concluded from their absence. */
export const absenceAlarmSchema = z
  .object({
    id: z.string().describe('What confirmAbsence in the providers config must name to confirm it.'),
    since: time.describe('When it was raised.'),
    message: z.string().describe('What was seen.'),
    vmids: kubernetes(z.array(z.int()), { 'x-kubernetes-list-type': 'atomic' }).describe(
      'VMIDs that are missing.',
    ),
  })
  .describe(
    'Set while MassAbsence stands: VMs that are missing are neither made again nor taken for gone.',
  );

const orphans = z
  .object({
    vms: z.int().describe('VMs of the operator without a Proxy.'),
    seeds: z.int().describe('Seeds of the operator without a Proxy and without a VM.'),
    leftovers: z.int().describe('Leftovers that are gone or can be removed by now.'),
    alarm: z
      .string()
      .nullable()
      .default(null)
      .describe('Id of the alarm that holds the collection up; confirmAbsence may name it.'),
    message: z.string().default('').describe('The alarm, or why the last round could not look.'),
    lastRound: time.describe('When the last round of the collection ended.'),
  })
  .describe('What the collection of orphans found.');

/** `status` of a ProviderHealth; absent fields as `null`, lists as `[]`. */
export const providerHealthStatusSchema = z
  .object({
    type: z
      .string()
      .nullable()
      .default(null)
      .describe('Type of the provider, for example proxmox.'),
    ready: z
      .string()
      .nullable()
      .default(null)
      .describe('Ready targets of all targets, for example 2/3.'),
    reason: z
      .string()
      .nullable()
      .default(null)
      .describe('Reachable, or the reason of the first target that is not ready.'),
    targets: kubernetes(z.array(target), {
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
    })
      .default([])
      .describe('One entry per node, in the order of the config.'),
    alarm: absenceAlarmSchema
      .nullable()
      .default(null)
      .describe('The MassAbsence alarm, while it stands.'),
    orphans: orphans
      .nullable()
      .default(null)
      .describe('What the last round of the collection found, see the Schedule gc-<provider>.'),
    conditions: conditionsSchema.describe(
      'ConfigValid says whether the last edit of the providers config was accepted.',
    ),
  })
  .describe('What the operator last saw; written by the operator only.');

/** One node in a health check. */
export type ProviderTarget = z.output<typeof target>;
export type ProviderHealthStatus = z.output<typeof providerHealthStatusSchema>;
/** A `MassAbsence` alarm. */
export type AbsenceAlarm = z.output<typeof absenceAlarmSchema>;
