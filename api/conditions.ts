/** Conditions in the form every Kubernetes tool expects (kstatus, `kubectl wait`). */
import { z } from 'zod';
import { kubernetes } from './validation.ts';

/** One condition; times as RFC 3339, `null` when absent. */
const conditionSchema = z.object({
  type: z.string().describe('What the condition is about.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether it holds.'),
  reason: z.string().default('').describe('Why, in one word.'),
  message: z
    .string()
    .default('')
    .describe('Why, in a sentence, with the remedy where there is one.'),
  lastTransitionTime: kubernetes(z.string(), { format: 'date-time' })
    .nullable()
    .default(null)
    .describe('When status last changed.'),
  observedGeneration: z
    .int()
    .nullable()
    .default(null)
    .describe('Generation of the object the condition speaks about.'),
});

/** Conditions as a list keyed by type. */
export const conditionsSchema = kubernetes(z.array(conditionSchema), {
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
}).default([]);

/** A condition as read from an object. */
export type ConditionRecord = z.output<typeof conditionSchema>;
