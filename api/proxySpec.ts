/** `spec` of a Proxy: the one source of the CRD, of `kubectl explain` and of what the operator reads (design §2). */
import { z } from 'zod';
import { kubernetes, withRules } from './validation.ts';

/** Upper bound of cloud-init, inline or from a Secret, in bytes of UTF-8. */
export const maxCloudInitBytes = 256 * 1024;

/** What a provider may be called; also the name of its ProviderHealth, hence no dash at either end. */
export const providerNamePattern = '^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$';

// The last label must not be a number: «10.0.0.300» is a mistyped address, not a host.
const hostPattern =
  '^([A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?[.])*[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?$';
const hostRule = `self.matches('${hostPattern}') && !self.matches('(^|[.])[0-9]+$')`;

const secretName = withRules(z.string().min(1).max(253), {
  rule: "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",
  message:
    'must be the name of a Secret in the namespace of the Proxy: lowercase letters, digits, dashes and dots',
});

const secretKey = withRules(z.string().min(1).max(253), {
  rule: "self.matches('^[-._a-zA-Z0-9]+$')",
  message: 'must be a key of the Secret: letters, digits, dashes, dots and underscores',
}).describe('Key of that Secret.');

const catalogueKey = z.string().min(1).max(63);

const placement = z
  .object({
    region: catalogueKey
      .optional()
      .describe('Not used by Proxmox. Changing it replaces the VM and does nothing else.'),
    zone: catalogueKey
      .optional()
      .describe(
        "Node of the provider's cluster the VM is made on. May be left out when the provider lists exactly one node.",
      ),
    machineType: catalogueKey
      .optional()
      .describe("Key in the provider's machineTypes: cores, memory and disk. Needed by Managed."),
    image: catalogueKey
      .optional()
      .describe("Key in the provider's templates: what the VM is cloned from. Needed by Managed."),
  })
  .describe('Where the VM is made and of what. Managed only. A change replaces the VM.');

const seconds = (min: number, max: number) => z.int().min(min).max(max);

const healthCheckUrl = withRules(z.string().min(1).max(2048), {
  rule: "isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != ''",
  message: 'must be a URL that begins with http:// or https:// and names a host',
})
  .optional()
  .describe(
    "What the probe asks for through the proxy. Default: the operator's --health-check-url (http://www.gstatic.com/generate_204).",
  );

const healthCheck = withRules(
  z.object({
    url: healthCheckUrl,
    intervalSeconds: seconds(1, 3600)
      .default(30)
      .describe('Seconds between two probes, 1 to 3600.'),
    timeoutSeconds: seconds(1, 300)
      .default(10)
      .describe('Seconds one probe may take, 1 to 300 and at most intervalSeconds.'),
    failureThreshold: z
      .int()
      .min(1)
      .max(100)
      .default(3)
      .describe('Failed probes in a row that make the Proxy unhealthy, 1 to 100.'),
    successThreshold: z
      .int()
      .min(1)
      .max(100)
      .default(1)
      .describe('Good probes in a row that make the Proxy healthy, 1 to 100.'),
    expectedStatuses: kubernetes(z.array(z.int().min(100).max(599)).min(1).max(50), {
      'x-kubernetes-list-type': 'set',
    })
      .optional()
      .describe('HTTP statuses that count as good, each 100 to 599. Default: any 2xx or 3xx.'),
  }),
  {
    // The API server tries the rule on the bare default {} too, before defaults are filled in.
    rule: '!has(self.timeoutSeconds) || !has(self.intervalSeconds) || self.timeoutSeconds <= self.intervalSeconds',
    message: 'timeoutSeconds must not be greater than intervalSeconds, or probes would overlap',
    fieldPath: '.timeoutSeconds',
  },
)
  .prefault({})
  .describe(
    'How the proxy is probed. Real requests go through it; Ready means that one came back as expected.',
  );

const specFields = z.object({
  mode: withRules(z.enum(['Managed', 'External']), {
    rule: 'self == oldSelf',
    message: 'mode cannot be changed; delete the Proxy and make a new one',
  })
    .default('Managed')
    .describe(
      'Managed: the operator makes, watches and deletes a VM. External: the proxy at spec.address exists already and is only probed and listed. Cannot be changed.',
    ),
  address: withRules(z.string().min(1).max(253), {
    rule: `isIP(self) || (${hostRule})`,
    message:
      'must be an IP address or a host name alone, without scheme, port, path or brackets; the port belongs in spec.port',
  })
    .optional()
    .describe('IP address or host name of an External proxy, without port. External only.'),
  provider: withRules(z.string().min(1).max(40), {
    rule: `self.matches('${providerNamePattern}')`,
    message:
      'must be the name of a provider: at most 40 lowercase letters, digits and dashes, beginning and ending with a letter or digit',
  })
    .optional()
    .describe(
      'Name of the provider (a Proxmox VE cluster in the providers config) the VM runs on. Managed only. A change replaces the VM.',
    ),
  placement: placement.optional(),
  port: z
    .int()
    .min(1)
    .max(65535)
    .default(3128)
    .describe('TCP port the proxy listens on, 1 to 65535. A change does not touch the VM.'),
  cloudInit: z
    .string()
    .min(1)
    .max(maxCloudInitBytes)
    .optional()
    .describe(
      'cloud-init user-data, passed on byte for byte; at most 256 KiB. Managed needs this or cloudInitFrom. A change replaces the VM. Plain `kubectl apply` keeps a second copy in an annotation of limited size: from about 250 KiB on use `kubectl apply --server-side`.',
    ),
  cloudInitFrom: z
    .object({
      secretKeyRef: z
        .object({
          name: secretName.describe('Secret with cloud-init, in the namespace of the Proxy.'),
          key: secretKey,
        })
        .describe('Secret and key that hold cloud-init.'),
    })
    .optional()
    .describe(
      'Takes cloud-init from a Secret instead, at most 256 KiB: the place for credentials. Managed needs this or cloudInit. A change of the content replaces the VM.',
    ),
  auth: z
    .object({
      secretRef: z
        .object({
          name: secretName.describe(
            'Secret with the keys username and password, in the namespace of the Proxy.',
          ),
        })
        .describe('Secret with the keys username and password.'),
    })
    .optional()
    .describe(
      'Credentials the probe uses at the proxy. The discovery API never shows them; the proxy itself gets its own from cloud-init.',
    ),
  healthCheck,
  replaceStrategy: z
    .enum(['CreateFirst', 'DeleteFirst'])
    .default('CreateFirst')
    .describe(
      'What a change that needs another VM does. CreateFirst: the old VM serves until the new one is Ready. DeleteFirst: the old VM goes first.',
    ),
  deletionPolicy: z
    .enum(['Delete', 'Retain'])
    .default('Delete')
    .describe(
      'What happens to the VM when the Proxy is deleted. Retain: a VM that was ever Ready stays, with its seed, marked as retained.',
    ),
  drainSeconds: seconds(0, 3600)
    .default(30)
    .describe('Seconds between leaving the discovery API and stopping the VM, 0 to 3600.'),
  paused: z
    .boolean()
    .default(false)
    .describe(
      'While true nothing is changed on Proxmox and a deletion waits; probes and observation go on. Takes effect between two steps.',
    ),
});

/** `spec` with defaults applied. The rules between fields are the API server's (CEL); see the metadata. */
export const proxySpecSchema = withRules(
  specFields,
  {
    // maxLength counts characters, this counts bytes. A rule at the field itself would have the API server repeat the
    // whole cloud-init, secrets included, in its answer.
    rule: `!has(self.cloudInit) || size(bytes(self.cloudInit)) <= ${maxCloudInitBytes}`,
    message: `cloudInit must be at most ${maxCloudInitBytes} bytes (256 KiB) of UTF-8`,
    fieldPath: '.cloudInit',
  },
  {
    rule: "self.mode != 'Managed' || has(self.provider)",
    message: 'a Managed Proxy needs the name of a provider',
    fieldPath: '.provider',
    reason: 'FieldValueRequired',
  },
  {
    rule: "self.mode != 'Managed' || has(self.cloudInit) || has(self.cloudInitFrom)",
    message: 'a Managed Proxy needs cloudInit or cloudInitFrom',
    fieldPath: '.cloudInit',
    reason: 'FieldValueRequired',
  },
  {
    rule: '!has(self.cloudInit) || !has(self.cloudInitFrom)',
    message: 'cloudInit and cloudInitFrom exclude each other; keep one of them',
    fieldPath: '.cloudInitFrom',
    reason: 'FieldValueForbidden',
  },
  {
    rule: "self.mode != 'Managed' || (has(self.placement) && has(self.placement.machineType))",
    message: "a Managed Proxy needs a machine type, a key in the provider's machineTypes",
    fieldPath: '.placement.machineType',
    reason: 'FieldValueRequired',
  },
  {
    rule: "self.mode != 'Managed' || (has(self.placement) && has(self.placement.image))",
    message: "a Managed Proxy needs an image, a key in the provider's templates",
    fieldPath: '.placement.image',
    reason: 'FieldValueRequired',
  },
  {
    rule: "self.mode != 'Managed' || !has(self.address)",
    message: 'a Managed Proxy takes no address: the VM reports its own; use mode External for it',
    fieldPath: '.address',
    reason: 'FieldValueForbidden',
  },
  {
    rule: "self.mode != 'External' || has(self.address)",
    message: 'an External Proxy needs the address (IP or host name) of the proxy',
    fieldPath: '.address',
    reason: 'FieldValueRequired',
  },
  ...(['provider', 'placement', 'cloudInit', 'cloudInitFrom'] as const).map((field) => ({
    rule: `self.mode != 'External' || !has(self.${field})`,
    message: `an External Proxy takes no ${field}: the operator makes no VM for it`,
    fieldPath: `.${field}`,
    reason: 'FieldValueForbidden' as const,
  })),
).describe('What is wanted.');
