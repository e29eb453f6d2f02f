/** Rules of the API server beside the zod schema they belong to: they travel as metadata into the CRD. */
import type { z } from 'zod';

/** One CEL rule (`x-kubernetes-validations`). `message` is a sentence for the person at kubectl. */
export interface CelRule {
  rule: string;
  message: string;
  /** Field the message is shown at, relative to the schema that carries the rule. */
  fieldPath?: string;
  reason?: 'FieldValueRequired' | 'FieldValueForbidden' | 'FieldValueInvalid';
}

/** Keys of a JSON schema that only Kubernetes knows. */
export interface KubernetesKeys {
  'x-kubernetes-validations'?: CelRule[];
  'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  'x-kubernetes-list-map-keys'?: string[];
  format?: 'int32' | 'int64' | 'date-time';
}

/** The schema with keys that the CRD generator copies; parsing is unchanged. */
export function kubernetes<S extends z.ZodType>(schema: S, keys: KubernetesKeys): S {
  return schema.meta({ ...schema.meta(), ...keys });
}

/** The schema with CEL rules; zod does not evaluate them, the API server does. */
export function withRules<S extends z.ZodType>(schema: S, ...validations: CelRule[]): S {
  return kubernetes(schema, { 'x-kubernetes-validations': validations });
}
