/** From `kubectl apply` to Ready and back to nothing, on real servers: what a user sees, and what stands on the cluster. */
import assert from 'node:assert/strict';
import type { Proxy } from '../../api/proxy.ts';
import { TestProxy } from '../support/testProxy.ts';
import { expectPage } from './support/client.ts';
import { simulatedVms } from './support/cluster.ts';
import { withSettings } from './support/config.ts';
import {
  conditionOf,
  discover,
  discoverText,
  eventsOf,
  expectNothingLeft,
  managedSpec,
  onlyVmOf,
  proxyManifest,
  readProxy,
  readyMs,
  secretManifest,
  seedsOf,
  until,
  untilProxy,
  untilReady,
  userDataOf,
  vmsOf,
  watchVersions,
} from './support/proxies.ts';
import type { SystemStack } from './support/stack.ts';
import { onOneStack } from './support/suite.ts';
import { cells, expectColumns } from './support/windows.ts';

/** Everything that a rendering on the way would change: line ends, tabs, blanks at the end, characters of 2 to 4 bytes. */
const awkward =
  '#cloud-config\r\n# \u00e9 \u20ac \u{1f600}\ttab  \nruncmd: ["echo \'$x\' \\\\n"]\n\n';

const setting = {
  stack: {
    temporalDb: 'memory',
    providersConfig: withSettings({ maxClones: 8, maxDestroys: 8 }),
  },
  concurrency: 6,
  atEnd: async ({ simulator }: SystemStack): Promise<void> => {
    assert.deepEqual(await simulatedVms(simulator), []);
  },
} as const;

onOneStack('a Proxy from kubectl apply to Ready and back to nothing', setting, (story) => {
  story('a Managed Proxy serves, shows what it is, and leaves nothing behind', async (stack) => {
    const name = 'whole-story';
    const watch = watchVersions(stack, name, '{.status.phase}');
    const spec = managedSpec({
      placement: { zone: 'pv1-2', machineType: 'medium', image: 'debian-13' },
      cloudInit: awkward,
      drainSeconds: 3,
    });
    const manifest = proxyManifest(name, spec, { labels: { pool: 'story' } });
    const applied = await stack.tryKubectl(['apply', '-f', '-'], manifest);
    assert.equal(applied.code, 0, applied.stderr);
    await stack.kubectl('wait', `px/${name}`, '--for=condition=Ready', `--timeout=${readyMs}ms`);
    const proxy = await readProxy(stack, name);

    await expectColumns(stack, proxy);
    assert.equal((await cells(stack, name)).length, 7);
    await expectVm(stack, proxy);
    assert.deepEqual(await userDataOf(stack, proxy), [awkward]);
    assert.deepEqual(await seedsOf(stack, proxy), [`pv1-2 ${proxy.status.vmName}-seed.iso`]);
    await expectDiscovered(stack, proxy);
    await expectPage(stack, `${proxy.status.ip}:3128`);

    await stack.kubectl('delete', 'px', name, '--wait=false');
    await untilUndiscovered(stack, name);
    assert.ok((await onlyVmOf(stack, proxy)).running, 'the VM runs while clients finish');
    await expectNothingLeft(stack, proxy);
    const events = (await eventsOf(stack, proxy)).map(({ type, reason }) => `${type} ${reason}`);
    assert.deepEqual(events, [
      'Normal Provisioning',
      'Normal AddressKnown',
      'Normal Ready',
      'Normal Deleting',
      'Normal VmRemoved',
    ]);
    const phases = await watch.stop();
    assert.deepEqual(phases, ['Pending', 'Provisioning', 'Running', 'Ready', 'Deleting']);
  });

  story('an External Proxy is probed, listed and released, and no VM is made', async (stack) => {
    const name = 'external';
    const server = new TestProxy();
    const port = await server.start();
    // The first may be one that the server cuts off as it stops; the second finds nobody there.
    const healthCheck = { intervalSeconds: 1, timeoutSeconds: 1, failureThreshold: 2 };
    try {
      const spec = { mode: 'External', address: '127.0.0.1', port, healthCheck };
      await stack.apply(proxyManifest(name, spec));
      const proxy = await untilReady(stack, name);
      assert.deepEqual([proxy.status.ip, proxy.status.vmid], ['127.0.0.1', null]);
      await until(stack, 'discovery should list it', async () => {
        const [listed] = (await discover(stack)).filter((one) => one.name === name);
        assert.equal(listed?.address, `127.0.0.1:${port}`);
      });
      assert.ok(server.seen.includes(`GET ${stack.pages.probeUrl}`), 'the probe is a real request');
      assert.deepEqual(await vmsOf(stack, proxy), []);

      await server.stop();
      const down = await untilProxy(stack, name, 'be found down', ({ status }) => {
        return status.phase === 'Running';
      });
      assert.equal(conditionOf(down, 'Ready').reason, 'ConnectionRefused');
      assert.match(down.status.message, new RegExp(`127\\.0\\.0\\.1:${port} refused`));
      await untilUndiscovered(stack, name);
      await server.start(port);
      await untilReady(stack, name);

      await stack.kubectl('delete', 'px', name);
      await expectNothingLeft(stack, proxy);
    } finally {
      await server.stop();
    }
  });

  story('cloud-init comes from a Secret, byte for byte', async (stack) => {
    const name = 'from-secret';
    await stack.apply(secretManifest('cloud-init', { 'user-data': awkward, other: 'no' }));
    const cloudInitFrom = { secretKeyRef: { name: 'cloud-init', key: 'user-data' } };
    await stack.apply(proxyManifest(name, managedSpec({ cloudInit: undefined, cloudInitFrom })));
    const proxy = await untilReady(stack, name);
    assert.deepEqual(await userDataOf(stack, proxy), [awkward]);
    await stack.kubectl('delete', 'px', name);
    await expectNothingLeft(stack, proxy);
  });

  story('a proxy that asks for a password is Ready once the probe knows it', async (stack) => {
    const name = 'with-password';
    const cloudInit = '#cloud-config\n# simulator: auth=probe:s3cret\n';
    const healthCheck = { intervalSeconds: 2, timeoutSeconds: 2 };
    await stack.apply(proxyManifest(name, managedSpec({ cloudInit, healthCheck })));
    const asked = await untilProxy(stack, name, 'be asked for credentials', (proxy) => {
      return conditionOf(proxy, 'Ready').reason === 'ProxyAuthenticationRequired';
    });
    assert.equal(asked.status.phase, 'Running');
    assert.match(asked.status.message, /asks for credentials \(407\); set spec\.auth\.secretRef/);

    await stack.apply(secretManifest('credentials', { username: 'probe', password: 's3cret' }));
    const auth = { secretRef: { name: 'credentials' } };
    await stack.apply(proxyManifest(name, managedSpec({ cloudInit, healthCheck, auth })));
    const proxy = await untilReady(stack, name);
    assert.equal(proxy.status.vmid, asked.status.vmid, "the probe's credentials replace no VM");
    await until(stack, 'discovery should list it', async () => {
      const [endpoint] = (await discover(stack)).filter((one) => one.name === name);
      assert.ok(endpoint && !JSON.stringify(endpoint).includes('s3cret'));
    });
    await stack.kubectl('delete', 'px', name);
    await expectNothingLeft(stack, proxy);
  });

  story('200 KiB of inline cloud-init arrive whole', async (stack) => {
    const name = 'large';
    const line = '# 0123456789abcdef\n';
    const cloudInit = `#cloud-config\n${line.repeat(Math.ceil((200 * 1024) / line.length))}`;
    await stack.apply(proxyManifest(name, managedSpec({ cloudInit })));
    const proxy = await untilReady(stack, name);
    const [userData] = await userDataOf(stack, proxy);
    assert.ok(userData === cloudInit, 'the seed holds another user-data');
    await stack.kubectl('delete', 'px', name);
    await expectNothingLeft(stack, proxy);
  });
});

async function untilUndiscovered(stack: SystemStack, name: string): Promise<void> {
  await until(stack, `discovery should drop ${name}`, async () => {
    return !(await discover(stack)).some((endpoint) => endpoint.name === name);
  });
}

async function expectVm(stack: SystemStack, proxy: Proxy): Promise<void> {
  const { metadata, status } = proxy;
  const { node, config } = await onlyVmOf(stack, proxy);
  assert.deepEqual([node, status.node], ['pv1-2', 'pv1-2']);
  assert.match(status.vmName ?? '', /^proxy-whole-story-[0-9a-f]{6}-[0-9a-f]{8}-[0-9a-f]{6}$/);
  assert.equal(status.providerID, `vms/${status.vmid}/${status.vmName}`);
  const { name, cores, memory, agent, tags, ide2, boot, scsi0 = '' } = config;
  assert.deepEqual(
    { name, cores, memory, agent, tags, ide2, boot },
    {
      name: status.vmName,
      cores: '2',
      memory: '2048',
      agent: '1',
      tags: 'proxy_operator',
      ide2: `proxy-seeds:iso/${status.vmName}-seed.iso,media=cdrom,size=60K`,
      boot: 'order=scsi0;ide2',
    },
  );
  assert.match(scsi0, /,size=10G$/, 'the disk was grown from 3 to 10 GiB');
  const system = await stack.kubectl('get', 'ns', 'kube-system', '-o=jsonpath={.metadata.uid}');
  const lines = (config['description'] ?? '').trim().split('\n');
  const [created = ''] = lines.splice(2, 1);
  assert.match(created, /^proxy-operator-created-at=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  assert.deepEqual(lines, [
    'proxy-operator-managed=true',
    `proxy-operator-uid=${metadata.uid}`,
    `proxy-operator-installation=${system}`,
    'proxy-operator-proxy=default/whole-story',
    `proxy-operator-spec=${status.specHash}`,
    'proxy-operator-deletion-policy=Delete',
  ]);
}

async function expectDiscovered(stack: SystemStack, { metadata, status }: Proxy): Promise<void> {
  const query = '?selector=pool=story';
  const address = `${status.ip}:3128`;
  assert.equal(await discoverText(stack, query), `${address}\n`);
  const endpoint = {
    namespace: 'default',
    name: metadata.name,
    address,
    ip: status.ip,
    port: 3128,
    mode: 'Managed',
    provider: 'proxmox-local',
    ready: true,
    healthy: true,
    phase: 'Ready',
    labels: { pool: 'story' },
  };
  await until(stack, 'discovery should list it', async () => {
    assert.deepEqual(await discover(stack, query), [endpoint]);
  });
}
