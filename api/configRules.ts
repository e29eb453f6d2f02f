/** Rules between fields of the providers config. They look at the raw value, so they speak up beside other problems. */
import { z } from 'zod';
import type { Problem } from './configProblems.ts';
import { cidrFamily, proxmoxConfigSchema } from './proxmoxConfig.ts';

const { nodes, vmidRange, templates, machineTypes, address } = proxmoxConfigSchema.shape;

/** Problems between fields; a rule whose fields have problems of their own stays silent. */
export function ruleProblems(value: unknown): Problem[] {
  const file = z.object({ providers: z.array(z.unknown()) }).safeParse(value);
  if (!file.success) return [];
  const { providers } = file.data;
  return [
    ...duplicateNames(providers),
    ...sharedQueues(providers),
    ...providers.flatMap((provider, index) =>
      proxmoxRules.flatMap((rule) =>
        rule(provider).map(({ path, text }) => ({
          path: ['providers', index, 'proxmox', ...path],
          text,
        })),
      ),
    ),
  ];
}

function nameOf(provider: unknown): string | undefined {
  return z.object({ name: z.string() }).safeParse(provider).data?.name;
}

function duplicateNames(providers: readonly unknown[]): Problem[] {
  const first = new Map<string, number>();
  return providers.flatMap((provider, index): Problem[] => {
    const name = nameOf(provider);
    if (name === undefined) return [];
    const earlier = first.get(name);
    if (earlier === undefined) {
      first.set(name, index);
      return [];
    }
    return [
      {
        path: ['providers', index, 'name'],
        text: `must be unique; providers[${earlier}] has the same name`,
      },
    ];
  });
}

/** The queue for the waits of a provider is named after it (workflows/contract/messages.ts), and must be no other one's. */
function sharedQueues(providers: readonly unknown[]): Problem[] {
  const names = providers.map(nameOf);
  return names.flatMap((name, index): Problem[] => {
    const other = names.findIndex((one) => one !== undefined && name === `${one}-wait`);
    if (other < 0) return [];
    const text = `must not be "${name}": that is the queue for the waits of providers[${other}]`;
    return [{ path: ['providers', index, 'name'], text }];
  });
}

type Rule = (provider: unknown) => Problem[];

/** A rule over some fields of `proxmox`, run only when those fields are sound. */
function over<Shape extends z.ZodRawShape>(
  shape: Shape,
  check: (fields: z.output<z.ZodObject<Shape>>) => Problem[],
): Rule {
  const schema = z.object({ proxmox: z.object(shape) });
  return (provider) => {
    const result = schema.safeParse(provider);
    return result.success ? check(result.data.proxmox) : [];
  };
}

const proxmoxRules: readonly Rule[] = [
  over({ nodes }, (config) =>
    config.nodes.flatMap((node, index): Problem[] => {
      const earlier = config.nodes.indexOf(node);
      if (earlier === index) return [];
      return [
        { path: ['nodes', index], text: `must be unique; nodes[${earlier}] is the same node` },
      ];
    }),
  ),
  over({ vmidRange }, (config) => {
    if (config.vmidRange.min < config.vmidRange.max) return [];
    return [{ path: ['vmidRange', 'min'], text: 'must be below max' }];
  }),
  over({ templates }, (config) => {
    if (Object.keys(config.templates).length > 0) return [];
    return [{ path: ['templates'], text: 'must hold at least one template' }];
  }),
  over({ machineTypes }, (config) => {
    if (Object.keys(config.machineTypes).length > 0) return [];
    return [{ path: ['machineTypes'], text: 'must hold at least one machine type' }];
  }),
  over({ nodes, templates }, templateCopies),
  over({ address }, (config) => {
    const { family, cidrs } = config.address;
    return cidrs.flatMap((cidr, index): Problem[] => {
      if (family === 'any' || cidrFamily(cidr) === family) return [];
      return [
        { path: ['address', 'cidrs', index], text: `is not a network of address.family ${family}` },
      ];
    });
  }),
];

function templateCopies(config: {
  nodes: string[];
  templates: z.output<typeof templates>;
}): Problem[] {
  return Object.entries(config.templates).flatMap(([key, { vmid, vmids }]): Problem[] => {
    const unknown = Object.keys(vmids).filter((node) => !config.nodes.includes(node));
    const without = config.nodes.filter((node) => vmids[node] === undefined);
    const found: Problem[] = unknown.map((node) => ({
      path: ['templates', key, 'vmids', node],
      text: 'is not one of proxmox.nodes',
    }));
    if (vmid !== null || without.length === 0) return found;
    const text =
      Object.keys(vmids).length === 0
        ? 'is required; it must be a whole number'
        : 'is required, because vmids does not name a copy for every node in proxmox.nodes';
    return [...found, { path: ['templates', key, 'vmid'], text }];
  });
}
