/**
 * Shapes of the API's answers, parsed at the edge. Perl sends numbers as strings and leaves out what is unset
 * (api-facts 1.7), so scalars are read liberally; what the seam does not promise is dropped.
 */
import { z } from 'zod';
import type {
  AgentInterface,
  ContentRow,
  NodeRow,
  PermissionTable,
  StorageStatus,
  TaskRow,
  TaskStatus,
  VmConfig,
  VmRow,
  VmStatus,
} from './api.ts';

const number = z.union([z.number(), z.string().regex(/^-?\d+(\.\d+)?$/)]).transform(Number);
const text = z.union([z.string(), z.number()]).transform(String);
const flag = z
  .union([z.number(), z.string(), z.boolean()])
  .transform((value) => value === true || Number(value) === 1);

/** Absent, null and empty mean the same: not set. Keys that hold nothing go, so that «absent» stays absent. */
const compact = z.record(z.string(), z.unknown()).transform((row) => {
  const held = Object.entries(row).filter(([, value]) => value !== null && value !== '');
  return Object.fromEntries(held);
});

/** `GET /version`. */
export const versionAnswer = z.object({ version: text });

const vmRow = z.object({
  vmid: number,
  type: z.enum(['qemu', 'lxc']),
  node: text,
  status: text.default('unknown'),
  name: text.exactOptional(),
  template: flag.exactOptional(),
  lock: text.exactOptional(),
  tags: text.exactOptional(),
}) satisfies z.ZodType<VmRow>;

/** `GET /cluster/resources?type=vm`; rows that are neither VM nor container are dropped. */
export const vmRowsAnswer = z
  .array(compact)
  .transform((rows) => rows.filter(({ type }) => type === 'qemu' || type === 'lxc'))
  .pipe(z.array(vmRow));

/** `GET /nodes`. A row without a status, or with one we do not know, is `unknown`. */
export const nodeRowsAnswer = z.array(
  z.object({ node: text, status: z.enum(['online', 'offline', 'unknown']).catch('unknown') }),
) satisfies z.ZodType<NodeRow[]>;

/**
 * `GET /access/permissions`: every listed path, or the one of `?path=…`, with its privileges and their propagate flags
 * (api-facts 5.26); a privilege is held when its key is there.
 */
export const permissionTableAnswer = z
  .record(z.string(), z.record(z.string(), flag.catch(false)))
  .transform((table): PermissionTable => {
    const paths = Object.entries(table);
    return new Map(paths.map(([path, held]) => [path, new Map(Object.entries(held))]));
  });

/** `GET /nodes/{node}/status`; older kernels are told by `kversion` only (30-node-status-pve2-via-pve1). */
export const nodeStatusAnswer = z
  .object({
    'current-kernel': z.object({ release: text.nullish() }).nullish().catch(null),
    kversion: text.nullish().catch(null),
  })
  .transform((status) => ({
    kernel:
      status['current-kernel']?.release ??
      /^Linux (\S+)/.exec(status.kversion ?? '')?.[1] ??
      status.kversion ??
      null,
  }));

/** `GET …/config`: scalars as text; Proxmox itself masks `cipassword`. */
export const vmConfigAnswer = z
  .looseObject({ digest: z.string() })
  .transform(({ digest, ...rest }): VmConfig => {
    const values: Record<string, string> = {};
    for (const [key, value] of Object.entries(rest)) {
      if (typeof value === 'string' || typeof value === 'number') values[key] = String(value);
      if (typeof value === 'boolean') values[key] = value ? '1' : '0';
    }
    return { digest, values };
  });

/** `GET …/status/current`. */
export const vmStatusAnswer = compact
  .pipe(
    z.object({
      status: z.enum(['running', 'stopped']),
      qmpstatus: text.optional(),
      name: text.exactOptional(),
      lock: text.exactOptional(),
      ha: compact.pipe(z.object({ managed: flag.catch(false) })).catch({ managed: false }),
    }),
  )
  .transform(({ qmpstatus, ha, ...status }): VmStatus => ({
    ...status,
    qmpstatus: qmpstatus ?? status.status,
    haManaged: ha.managed,
  }));

/** A UPID with its parts (api-facts 2.1). The colon at the end belongs to it. */
export const upidPattern =
  /^UPID:(?<node>[A-Za-z0-9][A-Za-z0-9-]*):[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8,9}:[0-9A-Fa-f]{8}:(?<type>[^:\s/]+):(?<id>[^:\s/]*):(?<user>[^:\s/]+):$/;
/** Answer of everything that starts a task. */
export const upidAnswer = z.string().regex(upidPattern);
/** A delete that ended at once answers `null` (pve/README 40). */
export const upidOrNullAnswer = upidAnswer.nullable();
/** Answer of a synchronous write. */
export const nothingAnswer = z.unknown();

/** `GET …/tasks/{upid}/status`. */
export const taskStatusAnswer = compact.pipe(
  z.object({
    status: z.enum(['running', 'stopped']),
    exitstatus: text.exactOptional(),
    type: text,
    id: text.default(''),
  }),
) satisfies z.ZodType<TaskStatus>;

/** `GET …/tasks/{upid}/log`: the lines. */
export const taskLogAnswer = z
  .array(z.object({ t: text.nullish() }))
  .transform((lines) => lines.map(({ t }) => t ?? ''));

/** `GET …/tasks`. `user` comes as `u@r!token` always: finished tasks carry the token apart (api-facts 2.5). */
export const taskRowsAnswer = z.array(
  compact
    .pipe(
      z.object({
        upid: z.string(),
        node: text,
        type: text,
        id: text.default(''),
        user: text,
        tokenid: text.optional(),
        endtime: number.exactOptional(),
        status: text.exactOptional(),
      }),
    )
    .transform(({ tokenid, user, ...row }): TaskRow => ({
      ...row,
      user: tokenid === undefined || user.includes('!') ? user : `${user}!${tokenid}`,
    })),
);

/** `GET …/storage/{storage}/content`. */
export const contentRowsAnswer = z.array(
  z.object({ volid: z.string(), size: number.catch(0), content: text.catch('') }),
) satisfies z.ZodType<ContentRow[]>;

/** `GET …/storage/{storage}/content/{volume}`. */
export const volumeAnswer = z.object({ size: number });

/** `GET …/storage/{storage}/status`. */
export const storageStatusAnswer = z
  .object({
    enabled: flag.nullish(),
    active: flag.nullish(),
    shared: flag.nullish(),
    content: text.nullish(),
    avail: number.nullish(),
  })
  .transform((storage): StorageStatus => ({
    enabled: storage.enabled ?? false,
    active: storage.active ?? false,
    shared: storage.shared ?? false,
    content: (storage.content ?? '').split(',').filter((kind) => kind !== ''),
    availBytes: storage.avail ?? 0,
  }));

const agentAddress = z.object({
  'ip-address-type': z.enum(['ipv4', 'ipv6']),
  'ip-address': z.string(),
  prefix: number,
});

/** An entry we cannot read is left out rather than making the whole answer useless. */
const agentInterface = z
  .object({
    name: text,
    'hardware-address': text.nullish(),
    'ip-addresses': z.array(agentAddress.nullable().catch(null)).nullish().catch(null),
  })
  .transform((entry): AgentInterface => ({
    name: entry.name,
    mac: entry['hardware-address'] ?? null,
    addresses: (entry['ip-addresses'] ?? []).flatMap((address) =>
      address === null
        ? []
        : {
            family: address['ip-address-type'],
            address: address['ip-address'],
            prefix: address.prefix,
          },
    ),
  }));

/**
 * `GET …/agent/network-get-interfaces`: a list, or nothing usable (a QGA error comes as 200 with `result.error`,
 * api-facts 5.22; `data` may be null).
 */
export const agentInterfacesAnswer = z
  .object({ result: z.array(agentInterface.nullable().catch(null)) })
  .transform(({ result }): AgentInterface[] | null => result.filter((entry) => entry !== null))
  .catch(null);
