/** docker-compose.yml: what its two profiles share, and that its images are of the versions the rest of the project uses. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { z } from 'zod';
import { apiserverSpec } from '../../deploy/dev/kubernetes.ts';
import { tools } from '../../deploy/dev/toolTable.ts';
import { assertSameNames, groupsIn, source } from '../support/pages.ts';

const serviceSchema = z.object({
  image: z.string(),
  command: z.array(z.string()).default([]),
  profiles: z.array(z.string()),
  ports: z.array(z.string()).default([]),
  networks: z.object({ default: z.object({ aliases: z.array(z.string()) }) }).optional(),
  depends_on: z.record(z.string(), z.object({ required: z.boolean().default(true) })).default({}),
});
const { services } = z
  .object({ services: z.record(z.string(), serviceSchema) })
  .parse(parse(source('docker-compose.yml')));

const profiles = ['dev', 'postgres'] as const;
const addresses = { temporal: 7233, 'temporal-ui': 8233 };

function servicesOf(profile: string) {
  return Object.entries(services).filter(([, service]) => service.profiles.includes(profile));
}

/** Services that answer to a host name in a profile: by their own name, or by an alias. */
function answeringTo(host: string, profile: string) {
  return servicesOf(profile).filter(
    ([name, service]) => name === host || service.networks?.default.aliases.includes(host),
  );
}

function tagOf(image: string): string {
  return image.slice(image.lastIndexOf(':') + 1);
}

test('in every profile exactly one service is Temporal, and one its UI, where controller and worker look for them', () => {
  const named = groupsIn([source('docker-compose.yml')], /\b(temporal[a-z-]*:\d{4})\b/g);
  assertSameNames(
    Object.entries(addresses).map(([host, port]) => `${host}:${port}`),
    named,
  );
  for (const profile of profiles) {
    for (const [host, port] of Object.entries(addresses)) {
      const answering = answeringTo(host, profile);
      assert.equal(answering.length, 1, `${host} in ${profile}`);
      assert.ok(answering[0]?.[1].ports.includes(`127.0.0.1:${port}:${port}`), `${host}:${port}`);
    }
  }
});

test('the profiles differ in nothing but Temporal', () => {
  const [dev = [], postgres = []] = profiles.map((profile) =>
    servicesOf(profile).map(([name]) => name),
  );
  assertSameNames(
    dev.filter((name) => !postgres.includes(name)),
    ['temporal'],
  );
  assertSameNames(
    postgres.filter((name) => !dev.includes(name)),
    ['postgres', 'temporal-schema', 'temporal-server', 'temporal-namespace', 'temporal-ui'],
  );
});

test('a service that is not in all profiles of another is no requirement of it', () => {
  for (const [name, service] of Object.entries(services)) {
    for (const [other, { required }] of Object.entries(service.depends_on)) {
      const missing = service.profiles.filter(
        (profile) => !services[other]?.profiles.includes(profile),
      );
      assert.equal(required, missing.length === 0, `${name} needs ${other}`);
    }
  }
});

test('the images are of the versions that make tools fetches', () => {
  const expected: Record<string, string> = {
    temporal: tools.temporal.version,
    etcd: `v${tools.etcd.version}`,
    'kube-apiserver': `v${tools['kube-apiserver'].version}`,
    kubectl: `v${tools.kubectl.version}`,
    manifests: `v${tools.kubectl.version}`,
  };
  for (const [name, tag] of Object.entries(expected)) {
    assert.equal(tagOf(services[name]?.image ?? ''), tag, name);
  }
});

test("Temporal's own server and the tools that make its tables are of one version", () => {
  const [server = '', ...others] = ['temporal-server', 'temporal-schema', 'temporal-namespace'].map(
    (name) => tagOf(services[name]?.image ?? ''),
  );
  assert.match(server, /^\d+\.\d+\.\d+$/);
  assert.deepEqual(others, [server, server]);
});

test('kube-apiserver lets the same users in, with the same rights, as in make up', () => {
  const folder = '/state/kubernetes';
  const nobody = { key: '', cert: '' };
  const files = {
    url: '',
    caFile: '',
    identities: { admin: nobody, controller: nobody, worker: nobody },
    kubeconfigs: { admin: '', controller: '', worker: '' },
    clientCaFile: `${folder}/client-ca.crt`,
    serviceAccountsKeyFile: `${folder}/service-accounts.key`,
  };
  const ports = { etcdPort: 2379, etcdPeerPort: 0, apiserverPort: 6443 };
  const plan = { folder, ...ports, etcdPath: '', apiserverPath: '', env: {} };
  const { args } = apiserverSpec(plan, files);
  // A container has its own address, and a default route.
  const local = ['--bind-address=127.0.0.1', '--advertise-address=127.0.0.1'];
  assertSameNames(
    args.filter((flag) => !local.includes(flag)).map((flag) => flag.replace('127.0.0.1', 'etcd')),
    (services['kube-apiserver']?.command ?? []).slice(1),
  );
});
