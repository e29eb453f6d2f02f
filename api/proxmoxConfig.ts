/** The `proxmox:` block of a provider (specification, Config reference; design §2): fields, defaults and bounds. */
import { isIP } from 'node:net';
import { z } from 'zod';

// Storage ids, bridges and node names end up in request paths and in values that commas and equals signs structure.
const storageId = z
  .string()
  .regex(
    /^[A-Za-z][A-Za-z0-9._-]{0,98}[A-Za-z0-9]$/,
    'must be a storage id: letters, digits, dots, dashes and underscores, beginning with a letter',
  );
const nodeName = z
  .string()
  .regex(
    /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/,
    'must be a node name as Proxmox knows it (lowercase letters, digits and dashes), not an address',
  );
const catalogueKey = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
    'must be a key of at most 63 letters, digits, dots, dashes and underscores, beginning with a letter or digit',
  );
const filePath = z.string().regex(/^[^\s].*[^\s]$|^[^\s]$/, 'must be the path of a file');
// A token pasted here would be repeated by every message that names the file.
const tokenPath = filePath.refine((value) => !/!.*=/.test(value), {
  error: 'must be the path of the file that holds the token, not the token itself',
});
const vmid = z.int().min(100).max(999_999_999);
const countAtLeast = (min: number, max: number) => z.int().min(min).max(max);

/** A map without inherited names, so that a lookup of `constructor` finds nothing. */
function bare<T>(map: Record<string, T>): Record<string, T> {
  return Object.assign(Object.create(null), map);
}

const url = z
  .string()
  .refine(isApiRoot, {
    error: 'must be https://<host>:8006 and nothing more: no path, no query, no credentials',
  })
  .transform((value) => new URL(value).origin);

function isApiRoot(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, pathname, search, hash, username, password } = new URL(value);
  const bareOrigin = pathname === '/' && search === '' && hash === '';
  return protocol === 'https:' && bareOrigin && username === '' && password === '';
}

const cidr = z.string().refine((value) => cidrFamily(value) !== null, {
  error: 'must be a network in CIDR form, for example 192.168.4.0/24',
});

/** Family of a network in CIDR form; `null` when it is none. */
export function cidrFamily(value: string): 'ipv4' | 'ipv6' | null {
  const [address = '', prefix = '', ...more] = value.split('/');
  const family = isIP(address);
  if (family === 0 || more.length > 0 || !/^\d{1,3}$/.test(prefix)) return null;
  if (Number(prefix) > (family === 4 ? 32 : 128)) return null;
  return family === 4 ? 'ipv4' : 'ipv6';
}

const template = z.strictObject({
  vmid: vmid
    .optional()
    .transform((value) => value ?? null)
    .describe(
      'VMID of the template, at least 100; `<key>` is what `placement.image` names. Needed unless `vmids` has a copy for every node in `nodes`.',
    ),
  vmids: z
    .record(nodeName, vmid)
    .default({})
    .transform(bare)
    .describe(
      'VMIDs of copies of the template, as `<node>: <vmid>`: a VM for that node is cloned from its copy, in place.',
    ),
});

const machineType = z.strictObject({
  cores: countAtLeast(1, 8192).describe(
    'CPU cores of the VM; `<key>` is what `placement.machineType` names.',
  ),
  memoryMiB: countAtLeast(1, 64 * 1024 * 1024).describe('Memory of the VM in MiB.'),
  diskGiB: countAtLeast(1, 1024 * 1024)
    .optional()
    .transform((value) => value ?? null)
    .describe('The boot disk is grown to this size when it is smaller. It is never shrunk.'),
});

const orNull = <S extends z.ZodType>(schema: S) =>
  schema.optional().transform((value): z.output<S> | null => value ?? null);

/** Field by field; rules between fields are in providersConfig.ts, so that all problems come out together. */
export const proxmoxConfigSchema = z.strictObject({
  url: url.describe(
    "Root of the API, `https://<host>:8006`, without a path. The host must be in the node's certificate.",
  ),
  tokenFile: tokenPath.describe(
    'File with one line `<user>@<realm>!<tokenid>=<secret>`. Read for every request, so a new token needs no restart.',
  ),
  caFile: orNull(filePath).describe(
    "PEM bundle that is trusted for the API's certificate, typically the node's `/etc/pve/pve-root-ca.pem`. A changed file counts for the next connection, without a restart. Default: the roots of Node and of the system.",
  ),
  insecureSkipTLSVerify: z
    .boolean()
    .default(false)
    .describe('Accept any certificate. Logged as a warning.'),
  nodes: z
    .array(nodeName)
    .min(1)
    .describe('Node names that `placement.zone` selects from, as Proxmox knows them; each once.'),
  isoStorage: storageId.describe(
    'Storage the seeds are uploaded to and deleted from. It must hold `iso` content, and the token needs `Datastore.Allocate` on it.',
  ),
  storage: orNull(storageId).describe(
    "Storage the disks of a new VM go to. Default: the storage of the template's disks.",
  ),
  bridge: orNull(
    z
      .string()
      .regex(
        /^[A-Za-z0-9_.-]{1,15}$/,
        'must be the name of a bridge or VNet: at most 15 letters, digits, dots, dashes and underscores',
      ),
  ).describe('Replaces `bridge=` in the cloned `net0`. Default: as cloned.'),
  vlanTag: orNull(countAtLeast(1, 4094)).describe(
    'Replaces or adds `tag=` in the cloned `net0`; 1 to 4094. Default: as cloned.',
  ),
  vmidRange: z
    .strictObject({
      min: vmid.default(100_000).describe('Lowest VMID the operator uses; at least 100.'),
      max: vmid
        .default(199_999)
        .describe('Highest VMID the operator uses; above `min`, at most 999999999.'),
    })
    .prefault({}),
  templates: z.record(catalogueKey, template).transform(bare),
  machineTypes: z.record(catalogueKey, machineType).transform(bare),
  requestTimeoutSeconds: countAtLeast(1, 3600)
    .default(30)
    .describe(
      'Seconds one API request may take, answer included; 1 to 3600. An upload gets one second more per MiB.',
    ),
  vendorData: orNull(z.string().min(1)).describe(
    "cloud-init vendor-data put on every seed beside the Proxy's user-data. Top-level keys that the user-data has too win over it.",
  ),
  installGuestAgent: z
    .boolean()
    .default(true)
    .describe(
      'Add a vendor-data script that installs and starts `qemu-guest-agent`. Switch it off for templates that have the agent.',
    ),
  maxClones: countAtLeast(1, 100)
    .default(2)
    .describe('Clones of the operator that may run at the same time; 1 to 100.'),
  maxDestroys: countAtLeast(1, 100)
    .default(2)
    .describe('Destroys of the operator that may run at the same time; 1 to 100.'),
  abortClones: z
    .boolean()
    .default(false)
    .describe(
      'Abort a running clone when its Proxy is deleted or changed. Off, because an aborted clone can leave a lock that only root on the node clears.',
    ),
  destroyUnreferencedDisks: z
    .boolean()
    .default(true)
    .describe('Destroy a VM together with disks of its VMID that its config does not name.'),
  address: z
    .strictObject({
      family: z
        .enum(['ipv4', 'ipv6', 'any'])
        .default('ipv4')
        .describe(
          'Which addresses of a VM may become the address of the proxy: `ipv4`, `ipv6` or `any`.',
        ),
      cidrs: z
        .array(cidr)
        .default([])
        .describe(
          'Networks the address must be in; empty means any but loopback, link-local and APIPA.',
        ),
    })
    .prefault({}),
  gc: z
    .strictObject({
      mode: z
        .enum(['delete', 'report'])
        .default('delete')
        .describe(
          '`delete` removes VMs and seeds of ours whose Proxy is gone, `report` only tells about them.',
        ),
      graceMinutes: countAtLeast(0, 7 * 24 * 60)
        .default(30)
        .describe(
          'Minutes something must have been an orphan before it is removed; 0 to 10080 (a week).',
        ),
    })
    .prefault({}),
  confirmAbsence: orNull(z.string().min(1).max(253)).describe(
    'Id of a `MassAbsence` alarm (see the ProviderHealth) that a person has looked at and confirms.',
  ),
});

/** Settings of one Proxmox VE cluster, all defaults applied; `null` where something is left as it is. */
export type ProxmoxConfig = z.output<typeof proxmoxConfigSchema>;
/** One entry of `templates`. */
type TemplateConfig = z.output<typeof template>;

/** VMID a VM for `node` is cloned from: the node's own copy, else the one template. */
export function templateVmidFor(entry: TemplateConfig, node: string): number | null {
  return entry.vmids[node] ?? entry.vmid;
}
