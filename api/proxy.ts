/** The Proxy object (design §2): names, types, and the one way from a Kubernetes answer to a typed object. */
import { z } from 'zod';
import { proxySpecSchema } from './proxySpec.ts';
import { proxyStatusSchema } from './proxyStatus.ts';

/** Names of the CRD; `apiVersion` and `plural` are part of every path. */
export const group = 'egress-proxies.io';
export const version = 'v1alpha1';
export const apiVersion = `${group}/${version}`;
export const kind = 'Proxy';
export const plural = 'proxies';
/** Holds the object until its VMs and seeds are gone. */
export const finalizer = `${group}/proxy`;
/** Any fresh value means «now»; acted on once (design §2, `status.handled`). */
export const retryAnnotation = `${group}/retry`;
export const forceDeleteAnnotation = `${group}/force-delete`;

// The generated client of Kubernetes turns times into Date objects, a raw answer leaves text.
const time = z.preprocess(
  (value) => (value instanceof Date ? value.toISOString() : value),
  z.string(),
);

/** The metadata the operator looks at; maps and lists are present, if empty. */
const metadataSchema = z.object({
  name: z.string(),
  namespace: z.string(),
  uid: z.string(),
  generation: z.int(),
  resourceVersion: z.string(),
  creationTimestamp: time.optional(),
  deletionTimestamp: time.optional(),
  finalizers: z.array(z.string()).default([]),
  annotations: z.record(z.string(), z.string()).default({}),
  labels: z.record(z.string(), z.string()).default({}),
});

export type ProxyMetadata = z.output<typeof metadataSchema>;
/** `spec` with all defaults applied; fields without a default are optional. */
export type ProxySpec = z.output<typeof proxySpecSchema>;
/** `status` as read; what is absent is `null`, `[]`, `{}`, `''` or `false`. */
export type ProxyStatusRecord = z.output<typeof proxyStatusSchema>;

export interface Proxy {
  metadata: ProxyMetadata;
  spec: ProxySpec;
  status: ProxyStatusRecord;
}

/** An object that is no Proxy this version understands. Names object and fields, never a value. */
export class ProxyInvalid extends Error {
  readonly problems: readonly string[];

  constructor(subject: string, problems: readonly string[]) {
    super(`${subject} cannot be read: ${problems.join('; ')}`);
    this.name = 'ProxyInvalid';
    this.problems = problems;
  }
}

const envelope = z.object({
  metadata: metadataSchema,
  spec: proxySpecSchema,
  status: z.record(z.string(), z.unknown()).nullish(),
});

/**
 * The typed Proxy with defaults applied. Keys of a newer version are dropped, and a status field that does not parse
 * counts as absent: a status can be rebuilt, and must never keep a Proxy from being deleted.
 * @throws ProxyInvalid when metadata or spec do not have the form the API server guarantees.
 */
export function parseProxy(object: unknown): Proxy {
  const result = envelope.safeParse(object);
  if (!result.success)
    throw new ProxyInvalid(subjectOf(object), result.error.issues.map(describeIssue));
  const { metadata, spec, status } = result.data;
  return { metadata, spec, status: parseStatus(status ?? {}) };
}

function parseStatus(status: Record<string, unknown>): ProxyStatusRecord {
  const usable: Record<string, unknown> = {};
  for (const [field, schema] of Object.entries(proxyStatusSchema.shape)) {
    if (schema.safeParse(status[field]).success) usable[field] = status[field];
  }
  return proxyStatusSchema.parse(usable);
}

const named = z.object({
  metadata: z.object({ namespace: z.string().optional(), name: z.string().optional() }),
});

function subjectOf(object: unknown): string {
  const { data } = named.safeParse(object);
  if (data?.metadata.name === undefined) return 'An object without a name';
  return `Proxy ${data.metadata.namespace ?? ''}/${data.metadata.name}`;
}

function describeIssue(issue: z.core.$ZodIssue): string {
  return `${issue.path.join('.') || 'object'}: ${issue.message}`;
}
