import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { configKeys } from '../../api/configKeys.ts';
import { parseProxy, type Proxy } from '../../api/proxy.ts';
import { loadProvidersConfig, providersConfigSchema } from '../../api/providersConfig.ts';

const folder = new URL('../../deploy/samples/', import.meta.url);

function read(file: string): string {
  return readFileSync(new URL(file, folder), 'utf8');
}

const object = z.object({
  kind: z.string(),
  metadata: z.object({ name: z.string() }),
  stringData: z.record(z.string(), z.string()).optional(),
  spec: z.unknown().optional(),
});
type SampleObject = z.output<typeof object>;

function objectsOf(file: string): SampleObject[] {
  return parseAllDocuments(read(file)).map((document) => object.parse(document.toJS()));
}

function stored({ metadata, spec }: SampleObject): Proxy {
  const rest = { namespace: 'default', uid: 'u', generation: 1, resourceVersion: '1' };
  return parseProxy({ metadata: { ...metadata, ...rest }, spec });
}

const files = readdirSync(folder).filter((file) => file.startsWith('proxy'));
const proxies = files.flatMap((file) =>
  objectsOf(file)
    .filter(({ kind }) => kind === 'Proxy')
    .map((sample) => ({ file, sample, proxy: stored(sample) })),
);
const secrets = files.flatMap((file) => objectsOf(file)).filter(({ kind }) => kind === 'Secret');

/** providers.yaml with every disabled setting (`#key:`) switched on. */
const enabled = read('providers.yaml').replaceAll(/^(\s*)#(?=\S)/gm, '$1');

test('there is a sample of each way to make a Proxy', () => {
  assert.deepEqual(
    proxies.map(({ file }) => file),
    ['proxy.yaml', 'proxyExternal.yaml', 'proxyFromSecret.yaml'],
  );
});

for (const { file, sample, proxy } of proxies) {
  test(`${file} is understood to its last field`, () => {
    const understood = new Set(pathsOf(proxy.spec, ''));
    const dropped = pathsOf(sample.spec, '').filter((path) => !understood.has(path));
    assert.deepEqual(dropped, []);
  });
}

for (const { file, proxy } of proxies.filter(({ proxy: { spec } }) => spec.mode === 'Managed')) {
  test(`${file} names a provider, a node, a machine type and an image of providers.yaml`, () => {
    const { providers } = loadProvidersConfig(read('providers.yaml'), 'providers.yaml');
    const provider = providers.find(({ name }) => name === proxy.spec.provider)?.proxmox;
    const { zone = '', machineType = '', image = '' } = proxy.spec.placement ?? {};
    assert.ok(provider);
    assert.ok(provider.nodes.includes(zone));
    assert.ok(provider.machineTypes[machineType]);
    assert.ok(provider.templates[image]);
  });

  test(`the cloud-init of ${file} is a cloud-config that installs Squid and lets somebody in`, () => {
    const text = cloudInitOf(proxy);
    assert.ok(text.startsWith('#cloud-config\n'));
    const config = z
      .strictObject({
        package_update: z.literal(true),
        packages: z.tuple([z.literal('squid')]),
        write_files: z.array(z.object({ path: z.string(), content: z.string() })),
      })
      .parse(parse(text));
    const squid = config.write_files.find(({ path }) => path === '/etc/squid/conf.d/egress.conf');
    assert.match(squid?.content ?? '', /^http_access allow /m);
  });
}

test('the password in proxyFromSecret.yaml is said to be changed, and its Secrets exist', () => {
  const [fromSecret] = proxies.filter(({ file }) => file === 'proxyFromSecret.yaml');
  const name = fromSecret?.proxy.spec.auth?.secretRef.name;
  const credentials = secrets.find(({ metadata }) => metadata.name === name)?.stringData;
  assert.deepEqual(Object.keys(credentials ?? {}), ['username', 'password']);
  assert.match(read('proxyFromSecret.yaml'), /Change both before use/);
});

test('the open proxy is called one', () => {
  assert.match(read('proxy.yaml'), /this is an open proxy/);
});

test('providers.yaml is accepted as it is, and with every disabled setting switched on', () => {
  loadProvidersConfig(read('providers.yaml'), 'providers.yaml');
  loadProvidersConfig(enabled, 'providers.yaml');
});

test('providers.yaml mentions every key there is', () => {
  const mentioned = new Set(pathsOf(parse(enabled), ''));
  const missing = configKeys(providersConfigSchema).filter(({ path }) => !mentioned.has(path));
  assert.deepEqual(
    missing.map(({ path }) => path),
    [],
  );
});

test('a disabled setting of providers.yaml shows the default where there is one', () => {
  const [asItIs] = loadProvidersConfig(read('providers.yaml'), 'a').providers;
  const [switchedOn] = loadProvidersConfig(enabled, 'b').providers;
  assert.ok(asItIs && switchedOn);
  const changed = Object.entries(asItIs.proxmox).flatMap(([key, value]) => {
    const other: unknown = Reflect.get(switchedOn.proxmox, key);
    return JSON.stringify(other) === JSON.stringify(value) ? [] : [key];
  });
  const withoutDefault = ['storage', 'bridge', 'vlanTag', 'vendorData', 'confirmAbsence'];
  assert.deepEqual(changed.sort(), [...withoutDefault, 'templates', 'address'].sort());
});

function cloudInitOf({ spec: { cloudInit, cloudInitFrom } }: Proxy): string {
  if (cloudInit !== undefined) return cloudInit;
  const reference = cloudInitFrom?.secretKeyRef;
  const secret = secrets.find(({ metadata }) => metadata.name === reference?.name);
  return secret?.stringData?.[reference?.key ?? ''] ?? '';
}

/** Paths of all values, lists as `[]`, chosen keys of the two catalogues as `<key>`. */
function pathsOf(value: unknown, path: string): string[] {
  if (Array.isArray(value)) return [path, ...value.flatMap((item) => pathsOf(item, `${path}[]`))];
  if (typeof value !== 'object' || value === null) return [path];
  const chosen = path.endsWith('.templates') || path.endsWith('.machineTypes');
  return [
    path,
    ...Object.entries(value).flatMap(([key, member]) =>
      pathsOf(member, `${path === '' ? '' : `${path}.`}${chosen ? '<key>' : key}`),
    ),
  ];
}
