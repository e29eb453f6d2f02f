/** zod schemas to CustomResourceDefinitions: pure, so that a test can compare the result with the files in deploy/crds. */
import { stringify } from 'yaml';
import { z } from 'zod';
import { group, kind, plural, version } from './proxy.ts';
import {
  providerHealthKind,
  providerHealthPlural,
  providerHealthStatusSchema,
} from './providerHealth.ts';
import { proxySpecSchema } from './proxySpec.ts';
import { proxyStatusSchema } from './proxyStatus.ts';

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** A column of `kubectl get`; `wide` ones need `-o wide`. */
interface Column {
  name: string;
  type: 'string' | 'integer' | 'date';
  jsonPath: string;
  description: string;
  wide?: true;
}

/** What a CRD is made from. */
interface Resource {
  kind: string;
  plural: string;
  singular: string;
  shortName: string;
  scope: 'Namespaced' | 'Cluster';
  description: string;
  spec?: z.ZodType;
  status: z.ZodType;
  columns: Column[];
}

const age: Column = {
  name: 'Age',
  type: 'date',
  jsonPath: '.metadata.creationTimestamp',
  description: 'Time since the object was made.',
};

const proxyResource: Resource = {
  kind,
  plural,
  singular: 'proxy',
  shortName: 'px',
  scope: 'Namespaced',
  description:
    'An egress proxy: a VM the operator makes on a provider and keeps running (Managed), or one that exists already and is only probed and listed (External).',
  spec: proxySpecSchema,
  status: proxyStatusSchema,
  columns: [
    column('Mode', '.spec.mode', 'Managed or External.'),
    column('Provider', '.spec.provider', 'Provider the VM runs on.'),
    column('Phase', '.status.phase', 'Where the Proxy stands in its life.'),
    column('IP', '.status.ip', 'Address of the proxy that serves.'),
    column('Healthy', '.status.conditions[?(@.type=="Healthy")].status', 'Result of the probes.'),
    age,
    { ...column('Node', '.status.node', 'Node the VM runs on.'), wide: true },
    { ...column('VMID', '.status.vmid', 'VMID of the VM.'), type: 'integer', wide: true },
    { ...column('Workflow', '.status.workflowID', 'Temporal workflow.'), wide: true },
    { ...column('Message', '.status.message', 'What is going on.'), wide: true },
  ],
};

const providerHealthResource: Resource = {
  kind: providerHealthKind,
  plural: providerHealthPlural,
  singular: 'providerhealth',
  shortName: 'ph',
  scope: 'Cluster',
  description:
    'Health of one provider of the providers config, under its name. Made, updated and removed by the operator.',
  status: providerHealthStatusSchema,
  columns: [
    column('Type', '.status.type', 'Type of the provider.'),
    column('Ready', '.status.ready', 'Ready targets of all targets.'),
    column('Reason', '.status.reason', 'Reason of the first target that is not ready.'),
    column(
      'Config',
      '.status.conditions[?(@.type=="ConfigValid")].reason',
      'Accepted, or Rejected: the last edit of the providers config is not in force.',
    ),
    age,
  ],
};

/** Every generated file: its name in deploy/crds and its text. */
export function crdFiles(): { name: string; text: string }[] {
  return [proxyResource, providerHealthResource].map((resource) => ({
    name: `${resource.plural}.yaml`,
    text: `# Generated from api/ by \`npm run generate:crds\`; edit there.\n${stringify(definition(resource), { lineWidth: 0 })}`,
  }));
}

function column(name: string, jsonPath: string, description: string): Column {
  return { name, type: 'string', jsonPath, description };
}

function definition(resource: Resource): object {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${resource.plural}.${group}` },
    spec: {
      group,
      scope: resource.scope,
      names: {
        kind: resource.kind,
        listKind: `${resource.kind}List`,
        plural: resource.plural,
        singular: resource.singular,
        shortNames: [resource.shortName],
      },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: resource.columns.map(({ wide, ...shown }) =>
            wide ? { ...shown, priority: 1 } : shown,
          ),
          schema: { openAPIV3Schema: objectSchema(resource) },
        },
      ],
    },
  };
}

function objectSchema({ description, spec, status }: Resource): object {
  return {
    description,
    type: 'object',
    ...(spec && { required: ['spec'] }),
    properties: {
      apiVersion: { type: 'string', description: 'Group and version of this form of the object.' },
      kind: { type: 'string', description: 'Kind of the object.' },
      metadata: { type: 'object' },
      ...(spec && { spec: structural(spec, 'keepDefaults') }),
      status: structural(status, 'dropDefaults'),
    },
  };
}

/**
 * The schema in the form Kubernetes calls structural. Defaults of a status are for our parser only: in the CRD they
 * would fill in facts that nobody stated.
 */
function structural(schema: z.ZodType, defaults: 'keepDefaults' | 'dropDefaults'): JsonSchema {
  return z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    override: ({ jsonSchema }) => {
      if (defaults === 'dropDefaults') delete jsonSchema.default;
      // `kubectl explain` does not show defaults, so the description says them.
      if (isPlain(jsonSchema.default)) jsonSchema.description += ` Default: ${jsonSchema.default}.`;
      // «null or absent» is how the parser spells what is simply optional in Kubernetes.
      delete jsonSchema['nullable'];
      if (jsonSchema.type === 'integer') {
        if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
        if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
        jsonSchema.format = 'int64';
      }
    },
  });
}

function isPlain(value: unknown): value is string | number | boolean {
  return ['string', 'number', 'boolean'].includes(typeof value);
}
