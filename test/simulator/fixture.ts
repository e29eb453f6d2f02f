import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { z } from 'zod';
import { BUILTIN_ROLES } from './privileges.ts';
import { StartError } from './program.ts';

const isoFile = z.strictObject({
  /** File name in `template/iso`. */
  name: z.string(),
  sizeBytes: z.number().int().nonnegative(),
});

const storage = z.strictObject({
  id: z.string(),
  /** `dir`, `lvmthin`, `nfs`, `zfspool`: decides the shape of volume names and whether files can be uploaded. */
  type: z.enum(['dir', 'nfs', 'lvmthin', 'zfspool']),
  content: z.array(z.enum(['images', 'iso', 'vztmpl', 'backup', 'snippets', 'rootdir', 'import'])),
  path: z.string().optional(),
  /** Only these nodes have it; absent means all. */
  nodes: z.array(z.string()).optional(),
  disabled: z.boolean().default(false),
  shared: z.boolean().default(false),
  /** `false`: the configuration says it is a mount point, and nothing is mounted there. */
  mounted: z.boolean().default(true),
  totalBytes: z.number().int().nonnegative().default(270_553_174_016),
  usedBytes: z.number().int().nonnegative().default(20_049_387_520),
  availBytes: z.number().int().nonnegative().optional(),
  /** Cluster seconds that activating it takes, as on a dead NFS server: every storage call of a node waits for it. */
  slowSeconds: z.number().nonnegative().optional(),
  /** Cluster seconds for which making or freeing one image holds the storage's lock. */
  allocationSeconds: z.number().nonnegative().optional(),
  /** Clones that may copy at once; a further one ends in a lock timeout. Absent: any number. */
  cloneSlots: z.number().int().positive().optional(),
  isos: z.array(isoFile.extend({ node: z.string().optional() })).default([]),
});

const token = z.strictObject({
  id: z.string(),
  secret: z.string(),
  privsep: z.boolean().default(false),
  /** Epoch seconds, 0 = never. */
  expire: z.number().int().default(0),
});

const user = z.strictObject({
  /** `name@realm`. */
  id: z.string().regex(/^[^\s:/]+@[a-z]+$/),
  enabled: z.boolean().default(true),
  expire: z.number().int().default(0),
  tokens: z.array(token).default([]),
});

const role = z.strictObject({ id: z.string(), privileges: z.array(z.string()) });

const acl = z.strictObject({
  path: z.string().startsWith('/'),
  /** A user (`name@realm`) or a token (`name@realm!id`). */
  principal: z.string(),
  role: z.string(),
  propagate: z.boolean().default(true),
});

const guest = z.strictObject({
  vmid: z.number().int().min(100),
  node: z.string(),
  /** Config keys as in the `.conf` file; disks get a volume of the size they name. */
  config: z.record(z.string(), z.union([z.string(), z.number()])),
  running: z.boolean().default(false),
  /** Bytes really used by each disk; what a copy has to move. Default: a quarter of its size. */
  usedBytes: z.number().int().optional(),
});

const times = z.strictObject({
  /** Cluster seconds to copy one GiB of used data in a full clone. */
  cloneSecondsPerGiB: z.number().default(4),
  linkedCloneSeconds: z.number().default(0.25),
  /** From the start request until QEMU runs. */
  startSeconds: z.number().default(0.7),
  stopSeconds: z.number().default(0.3),
  /** From running until the guest agent answers (and the guest's proxy listens). */
  agentSeconds: z.number().default(14),
  /** A clean shutdown through the agent or ACPI. */
  shutdownSeconds: z.number().default(4),
  destroySeconds: z.number().default(0.4),
  uploadSeconds: z.number().default(0.1),
  resizeSeconds: z.number().default(0.1),
  migrateSeconds: z.number().default(6),
  /** A round of pvestatd. */
  statsSeconds: z.number().default(10),
  /** A round of the HA manager. */
  haSeconds: z.number().default(10),
  /** When the first of those rounds comes. */
  haOffsetSeconds: z.number().default(4),
  authDelaySeconds: z.number().default(3),
  /** An agent call that nobody answers. */
  agentTimeoutSeconds: z.number().default(3),
  lockWaitSeconds: z.number().default(10),
  /** For how long a change of a file of the whole cluster (users, jobs, HA) holds that file's lock. */
  clusterLockSeconds: z.number().default(0.02),
  deadNodeSeconds: z.number().default(3),
  cutNodeSeconds: z.number().default(30),
});

const fixture = z.strictObject({
  version: z.string().default('9.2.11'),
  release: z.string().default('9.2'),
  repoid: z.string().default('14a22df35955d97d'),
  clusterName: z.string().default('pve'),
  nodes: z
    .array(
      z.strictObject({
        name: z.string().regex(/^[a-zA-Z0-9][a-zA-Z0-9-]*$/),
        ip: z.string().default('10.99.0.1'),
        /** `dead`: no route to host; `absent`: a resolvable name that is no member of the cluster. */
        state: z.enum(['up', 'dead', 'absent']).default('up'),
        cpus: z.number().int().default(2),
        memoryBytes: z.number().int().default(25_276_502_016),
        bridges: z.array(z.string()).default(['vmbr0']),
      }),
    )
    .min(1),
  storages: z.array(storage),
  users: z.array(user),
  roles: z.array(role).default([]),
  acls: z.array(acl).default([]),
  pools: z.array(z.strictObject({ id: z.string(), members: z.array(z.string()) })).default([]),
  vms: z.array(guest).default([]),
  containers: z
    .array(z.strictObject({ vmid: z.number().int(), node: z.string(), name: z.string() }))
    .default([]),
  /** VMs that the HA manager looks after, with their wanted state. */
  ha: z
    .array(
      z.strictObject({
        vmid: z.number().int(),
        state: z.enum(['started', 'stopped', 'ignored']).default('started'),
      }),
    )
    .default([]),
  times: times.prefault({}),
});

/** The state a simulated cluster starts in; the format is described in README.md. */
export type Fixture = z.output<typeof fixture>;
export type FixtureInput = z.input<typeof fixture>;
export type StorageFixture = Fixture['storages'][number];
export type Times = Fixture['times'];

/** Checks a fixture; throws StartError naming every problem with its path. */
export function parseFixture(input: unknown, origin: string): Fixture {
  const result = fixture.safeParse(input);
  if (!result.success) {
    const problems = result.error.issues.map(
      (issue) => `  ${issue.path.join('.') || '(top)'}: ${issue.message}`,
    );
    throw new StartError(`fixture ${origin} is not valid:\n${problems.join('\n')}`);
  }
  const problems = crossCheck(result.data);
  if (problems.length > 0) {
    throw new StartError(
      `fixture ${origin} is not valid:\n${problems.map((p) => `  ${p}`).join('\n')}`,
    );
  }
  return result.data;
}

/** Reads a YAML file; see `parseFixture`. */
export function loadFixture(path: string): Fixture {
  return parseFixture(parse(readFileSync(path, 'utf8'), { merge: true }), path);
}

function crossCheck(data: Fixture): string[] {
  const nodes = new Set(data.nodes.map((node) => node.name));
  const roles = new Set([...BUILTIN_ROLES.keys(), ...data.roles.map((entry) => entry.id)]);
  const problems: string[] = [];
  for (const vm of [...data.vms, ...data.containers]) {
    if (!nodes.has(vm.node)) problems.push(`VM ${vm.vmid}: no node '${vm.node}'`);
  }
  for (const entry of data.acls) {
    if (!roles.has(entry.role)) problems.push(`acl ${entry.path}: no role '${entry.role}'`);
  }
  for (const entry of data.storages) {
    for (const node of entry.nodes ?? []) {
      if (!nodes.has(node)) problems.push(`storage ${entry.id}: no node '${node}'`);
    }
  }
  return problems;
}
