/** Specs the API server must accept and refuse; for the refused ones, sentences its answer must contain. */

const placement = { machineType: 'small', image: 'debian-13' };
/** The least a Managed Proxy needs. */
export const managed = { provider: 'proxmox-home', placement, cloudInit: '#cloud-config\n' };
/** The least an External Proxy needs. */
export const external = { mode: 'External', address: '192.0.2.7' };
const fromSecret = { secretKeyRef: { name: 'squid', key: 'user-data' } };
const limit = 262_144;

export const accepted: [title: string, spec: object][] = [
  ['a Managed Proxy with nothing but what it needs', managed],
  [
    'a Managed Proxy with every field',
    {
      ...managed,
      mode: 'Managed',
      placement: { ...placement, region: 'home', zone: 'pv1-1' },
      port: 65_535,
      auth: { secretRef: { name: 'probe.credentials' } },
      healthCheck: {
        url: 'https://example.org:8443/ok?x=1',
        intervalSeconds: 10,
        timeoutSeconds: 10,
        failureThreshold: 1,
        successThreshold: 100,
        expectedStatuses: [100, 204, 599],
      },
      replaceStrategy: 'DeleteFirst',
      deletionPolicy: 'Retain',
      drainSeconds: 0,
      paused: true,
    },
  ],
  [
    'cloud-init from a Secret',
    {
      provider: 'p',
      placement,
      cloudInitFrom: { secretKeyRef: { name: 'a', key: 'User_data.1' } },
    },
  ],
  ['cloud-init of exactly 256 KiB', { ...managed, cloudInit: 'x'.repeat(limit) }],
  [
    'cloud-init of exactly 256 KiB in two-byte characters',
    { ...managed, cloudInit: 'é'.repeat(limit / 2) },
  ],
  ['a provider name of 40 characters', { ...managed, provider: 'p'.repeat(40) }],
  ['an External Proxy at an IPv4 address', external],
  ['an External Proxy at an IPv6 address', { ...external, address: '2001:db8::7' }],
  ['an External Proxy at a host name', { ...external, address: 'Proxy-1.example.org', port: 1 }],
  ['an External Proxy at a host name of one label', { ...external, address: 'squid' }],
];

const addressSentence =
  'spec.address: Invalid value: "@": must be an IP address or a host name alone, without scheme, port, path or brackets; the port belongs in spec.port';
const urlSentence =
  'spec.healthCheck.url: Invalid value: "@": must be a URL that begins with http:// or https:// and names a host';
const providerSentence =
  'spec.provider: Invalid value: "@": must be the name of a provider: at most 40 lowercase letters, digits and dashes, beginning and ending with a letter or digit';

function badAddress(address: string): [string, object, string] {
  return [
    `the address ${address}`,
    { ...external, address },
    addressSentence.replace('@', address),
  ];
}
function badUrl(url: string): [string, object, string] {
  return [
    `the probe URL ${url}`,
    { ...managed, healthCheck: { url } },
    urlSentence.replace('@', url),
  ];
}
function badProvider(provider: string): [string, object, string] {
  return [
    `the provider name ${provider}`,
    { ...managed, provider },
    providerSentence.replace('@', provider),
  ];
}
function badCheck(healthCheck: object, sentence: string): [string, object, string] {
  const title = `a health check with ${JSON.stringify(healthCheck)}`;
  return [title, { ...managed, healthCheck }, `spec.healthCheck.${sentence}`];
}
function without(field: 'provider' | 'placement' | 'cloudInit'): object {
  return { ...managed, [field]: undefined };
}

export const refused: [title: string, spec: object, ...sentences: string[]][] = [
  [
    'a Managed Proxy without provider',
    without('provider'),
    'spec.provider: Required value: a Managed Proxy needs the name of a provider',
  ],
  [
    'a Managed Proxy without cloud-init',
    without('cloudInit'),
    'spec.cloudInit: Required value: a Managed Proxy needs cloudInit or cloudInitFrom',
  ],
  [
    'a Managed Proxy without placement',
    without('placement'),
    "spec.placement.machineType: Required value: a Managed Proxy needs a machine type, a key in the provider's machineTypes",
    "spec.placement.image: Required value: a Managed Proxy needs an image, a key in the provider's templates",
  ],
  [
    'a Managed Proxy without machine type',
    { ...managed, placement: { image: 'debian-13' } },
    'spec.placement.machineType: Required value',
  ],
  [
    'a Managed Proxy without image',
    { ...managed, placement: { machineType: 'small' } },
    'spec.placement.image: Required value',
  ],
  [
    'a Managed Proxy with an address',
    { ...managed, address: '192.0.2.7' },
    'spec.address: Forbidden: a Managed Proxy takes no address: the VM reports its own; use mode External for it',
  ],
  [
    'cloud-init both inline and from a Secret',
    { ...managed, cloudInitFrom: fromSecret },
    'spec.cloudInitFrom: Forbidden: cloudInit and cloudInitFrom exclude each other; keep one of them',
  ],
  ['an empty cloud-init', { ...managed, cloudInit: '' }, 'spec.cloudInit: Invalid value: ""'],
  [
    'cloud-init of 256 KiB and one byte',
    { ...managed, cloudInit: 'x'.repeat(limit + 1) },
    'spec.cloudInit: Too long: may not be more than 262144 bytes',
  ],
  [
    'cloud-init that is over 256 KiB in bytes, not in characters',
    { ...managed, cloudInit: `${'é'.repeat(limit / 2)}x` },
    'spec.cloudInit: Invalid value: cloudInit must be at most 262144 bytes (256 KiB) of UTF-8',
  ],
  [
    'a Secret name with capitals',
    { ...without('cloudInit'), cloudInitFrom: { secretKeyRef: { name: 'Squid', key: 'k' } } },
    'spec.cloudInitFrom.secretKeyRef.name: Invalid value: "Squid": must be the name of a Secret in the namespace of the Proxy',
  ],
  [
    'a Secret key with a slash',
    { ...without('cloudInit'), cloudInitFrom: { secretKeyRef: { name: 'squid', key: 'a/b' } } },
    'spec.cloudInitFrom.secretKeyRef.key: Invalid value: "a/b": must be a key of the Secret',
  ],
  [
    'a reference without a key',
    { ...without('cloudInit'), cloudInitFrom: { secretKeyRef: { name: 'squid' } } },
    'spec.cloudInitFrom.secretKeyRef.key: Required value',
  ],
  ['credentials without a Secret', { ...managed, auth: {} }, 'spec.auth.secretRef: Required value'],
  [
    'an External Proxy without address',
    { mode: 'External' },
    'spec.address: Required value: an External Proxy needs the address (IP or host name) of the proxy',
  ],
  [
    'an External Proxy with everything of a Managed one',
    { ...external, ...managed, cloudInitFrom: fromSecret, mode: 'External' },
    'spec.provider: Forbidden: an External Proxy takes no provider: the operator makes no VM for it',
    'spec.placement: Forbidden: an External Proxy takes no placement: the operator makes no VM for it',
    'spec.cloudInit: Forbidden: an External Proxy takes no cloudInit: the operator makes no VM for it',
    'spec.cloudInitFrom: Forbidden: an External Proxy takes no cloudInitFrom: the operator makes no VM for it',
  ],
  badAddress('192.0.2.7:3128'),
  badAddress('http://192.0.2.7'),
  badAddress('[2001:db8::7]'),
  badAddress('192.0.2.300'),
  badAddress('proxy.example.org:3128'),
  badAddress('proxy.example.org/'),
  badAddress('proxy_1.example.org'),
  badAddress('-proxy.example.org'),
  badAddress('fe80::1%eth0'),
  badUrl('ftp://example.org/'),
  badUrl('example.org'),
  badUrl('http://'),
  badUrl('/generate_204'),
  badProvider('Proxmox'),
  badProvider('proxmox.home'),
  badProvider('-proxmox'),
  badProvider('proxmox-'),
  [
    'a provider name of 41 characters',
    { ...managed, provider: 'p'.repeat(41) },
    'spec.provider: Too long: may not be more than 40 bytes',
  ],
  [
    'port 0',
    { ...managed, port: 0 },
    'spec.port: Invalid value: 0: spec.port in body should be greater than or equal to 1',
  ],
  [
    'port 65536',
    { ...managed, port: 65_536 },
    'spec.port: Invalid value: 65536: spec.port in body should be less than or equal to 65535',
  ],
  [
    'a drain of more than an hour',
    { ...managed, drainSeconds: 3601 },
    'spec.drainSeconds: Invalid value: 3601',
  ],
  ['a negative drain', { ...managed, drainSeconds: -1 }, 'spec.drainSeconds: Invalid value: -1'],
  [
    'an unknown mode',
    { ...managed, mode: 'Auto' },
    'spec.mode: Unsupported value: "Auto": supported values: "Managed", "External"',
  ],
  [
    'an unknown replace strategy',
    { ...managed, replaceStrategy: 'Rolling' },
    'spec.replaceStrategy: Unsupported value: "Rolling": supported values: "CreateFirst", "DeleteFirst"',
  ],
  [
    'an unknown deletion policy',
    { ...managed, deletionPolicy: 'Orphan' },
    'spec.deletionPolicy: Unsupported value: "Orphan": supported values: "Delete", "Retain"',
  ],
  badCheck(
    { intervalSeconds: 5, timeoutSeconds: 6 },
    'timeoutSeconds: Invalid value: timeoutSeconds must not be greater than intervalSeconds, or probes would overlap',
  ),
  badCheck(
    { intervalSeconds: 5 },
    'timeoutSeconds: Invalid value: timeoutSeconds must not be greater',
  ),
  badCheck({ intervalSeconds: 0, timeoutSeconds: 0 }, 'intervalSeconds: Invalid value: 0'),
  badCheck({ failureThreshold: 0 }, 'failureThreshold: Invalid value: 0'),
  badCheck({ successThreshold: 0 }, 'successThreshold: Invalid value: 0'),
  badCheck({ expectedStatuses: [99] }, 'expectedStatuses[0]: Invalid value: 99'),
  badCheck({ expectedStatuses: [600] }, 'expectedStatuses[0]: Invalid value: 600'),
  badCheck(
    { expectedStatuses: [] },
    'expectedStatuses: Invalid value: 0: spec.healthCheck.expectedStatuses in body should have at least 1 items',
  ),
  badCheck({ expectedStatuses: [200, 200] }, 'expectedStatuses[1]: Duplicate value: 200'),
  ['an unknown field', { ...managed, colour: 'red' }, 'unknown field "spec.colour"'],
  [
    'a port in quotes',
    { ...managed, port: '3128' },
    'spec.port: Invalid value: "string": spec.port in body must be of type integer: "string"',
  ],
];
