/** Mistakes of users and administrators: each says what is wrong where the user looks, and ends when it is mended. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { request } from 'undici';
import { z } from 'zod';
import { runCommand } from '../../deploy/dev/command.ts';
import { checkout } from '../../deploy/dev/stackFolder.ts';
import { simulatedRequests } from './support/cluster.ts';
import { edited, editConfig, withSettings } from './support/config.ts';
import { expectGivenUp } from './support/givenUp.ts';
import {
  conditionOf,
  eventsOf,
  expectNothingLeft,
  findProxy,
  managedSpec,
  onlyVmOf,
  proxyManifest,
  readProxy,
  secretManifest,
  until,
  untilProxy,
  untilReady,
  vmsOf,
} from './support/proxies.ts';
import type { SystemStack } from './support/stack.ts';
import { onOneStack } from './support/suite.ts';

const setting = {
  stack: { temporalDb: 'memory', providersConfig: withSettings({ maxClones: 20 }) },
  concurrency: 8,
} as const;
const newImage = { zone: 'pv1-1', machineType: 'small', image: 'debian-99' };
const unknownImage = 'placement.image "debian-99" is not in proxmox.templates';
const badConfig = `providers:
  - name: proxmox-local
    type: proxmox
    proxmox:
      url: https://127.0.0.1:8006
      tokenFile: /token
      nodes: [pv1-1]
      isoStorage: proxy-seeds
      vlantag: 4
      vmidRange: { min: 200, max: 100 }
      templates: { debian-13: { vmid: 9001 } }
      machineTypes: { small: { cores: 1, memoryMiB: 1024 } }
`;
const badConfigProblems = [
  'providers[0].proxmox.vlantag: is not a known key; did you mean vlanTag?',
  'providers[0].proxmox.vmidRange.min: must be below max',
];

onOneStack('mistakes are said, and forgiven when mended', setting, (story) => {
  story('an unknown image: Failed until the spec is corrected', async (stack) => {
    const name = 'unknown-image';
    await stack.apply(proxyManifest(name, managedSpec({ placement: newImage })));
    const failed = await untilFailed(stack, name);
    assert.equal(conditionOf(failed, 'Ready').message, unknownImage);
    assert.match(failed.status.message, /images: debian-13$/);
    assert.deepEqual(await vmsOf(stack, failed), []);
    await stack.apply(proxyManifest(name, managedSpec()));
    const proxy = await untilReady(stack, name);
    assert.equal(proxy.status.message, '');
    await stack.kubectl('delete', 'px', name);
    await expectNothingLeft(stack, proxy);
  });

  story('a missing Secret of cloud-init is waited for', async (stack) => {
    const name = 'no-secret';
    const cloudInitFrom = { secretKeyRef: { name: 'late', key: 'user-data' } };
    await stack.apply(proxyManifest(name, managedSpec({ cloudInit: undefined, cloudInitFrom })));
    const waiting = await untilProxy(stack, name, 'miss the Secret', (proxy) => {
      return conditionOf(proxy, 'Ready').reason === 'CloudInitUnavailable';
    });
    assert.equal(waiting.status.phase, 'Pending');
    assert.match(waiting.status.message, /Secret default\/late does not exist/);
    const [event] = await eventsOf(stack, waiting);
    assert.equal(event?.reason, 'CloudInitUnavailable');
    await stack.apply(secretManifest('late', { other: 'x' }));
    await untilProxy(stack, name, 'miss the key', ({ status }) => {
      return status.message.includes('Secret default/late has no key user-data');
    });
    await stack.apply(secretManifest('late', { 'user-data': '#cloud-config\n' }));
    const proxy = await untilReady(stack, name);
    await stack.kubectl('delete', 'px', name);
    await expectNothingLeft(stack, proxy);
  });

  story('a Proxy that never got a VM is deleted without asking the cluster', async (stack) => {
    const name = 'never-made';
    await stack.apply(proxyManifest(name, managedSpec({ placement: newImage })));
    const failed = await untilFailed(stack, name);
    await stack.kubectl('delete', 'px', name, '--timeout=30s');
    await expectNothingLeft(stack, failed);
    const named = `proxy-${name}-`;
    const requests = JSON.stringify(await simulatedRequests(stack.simulator));
    assert.ok(!requests.includes(named), 'no request was about it');
  });

  story(
    'a clone lock that no token can clear is reported, and holds up no deletion',
    async (stack) => {
      // The simulator kills the worker of a clone whose VM has this name.
      const name = 'demo-clone-lock';
      await stack.apply(proxyManifest(name, managedSpec()));
      const stuck = await untilProxy(stack, name, 'give a VMID up', ({ status }) => {
        return status.leftovers.length === 1;
      });
      const [leftover] = stuck.status.leftovers;
      assert.match(leftover?.reason ?? '', new RegExp(`qm unlock ${leftover?.vmid}`));
      const events = await eventsOf(stack, stuck);
      assert.ok(events.some(({ reason }) => reason === 'VmLeftover'));
      await stack.kubectl('delete', 'px', name, '--timeout=60s');
      assert.equal(await findProxy(stack, name), null);
    },
  );

  story('a protected VM blocks its deletion; the signal forceDelete gives it up', async (stack) => {
    const name = 'protected';
    await stack.apply(proxyManifest(name, managedSpec()));
    const proxy = await untilReady(stack, name);
    const { vmid, workflowID } = proxy.status;
    const forceDelete = ['workflow', 'signal', `--workflow-id=${workflowID}`, '--name=forceDelete'];
    await stack.temporalCli(...forceDelete);
    await until(stack, 'a force delete too early should be said', async () => {
      const events = await eventsOf(stack, proxy);
      assert.ok(events.some(({ reason }) => reason === 'ForceDeleteIgnored'));
    });
    assert.equal((await readProxy(stack, name)).status.phase, 'Ready');

    await stack.simulator.admin('POST', `/vms/${vmid}/config`, { protection: '1' });
    await stack.kubectl('delete', 'px', name, '--wait=false');
    const blocked = await untilProxy(stack, name, 'be blocked', (object) => {
      return conditionOf(object, 'Reconciling').reason === 'DeletionBlocked';
    });
    assert.match(blocked.status.message, new RegExp(`qm set ${vmid} --protection 0`));
    assert.ok((await onlyVmOf(stack, proxy)).running, 'protection is seen before the stop');
    await stack.temporalCli(...forceDelete);
    await until(stack, 'the Proxy should be given up', async () => {
      assert.equal(await findProxy(stack, name), null);
    });
    await expectGivenUp(stack, proxy);
  });

  story(
    'the providers config is followed: mistakes, a new provider, a new image',
    async (stack) => {
      await stack.apply(proxyManifest('elsewhere', managedSpec({ provider: 'nowhere' })));
      await stack.apply(proxyManifest('wants-image', managedSpec({ placement: newImage })));
      await untilFailed(stack, 'wants-image');
      const good = readFileSync(stack.providersConfigFile, 'utf8');
      writeFileSync(stack.providersConfigFile, badConfig);
      await until(stack, 'the mistake should show', async () => {
        assert.equal(await metric(stack, 'proxy_operator_config_valid'), '0');
        const { status, message } = await configValid(stack, 'proxmox-local');
        assert.equal(status, 'False');
        for (const problem of badConfigProblems) assert.ok(message.includes(problem), message);
      });
      const logged = stack.log('worker').split('\n').filter((line) => line.includes('providers config not accepted')); // prettier-ignore
      assert.equal(logged.length, 1, 'said once');
      for (const problem of badConfigProblems) assert.ok(logged[0]?.includes(problem));
      await stack.apply(proxyManifest('meanwhile', managedSpec()));
      await untilReady(stack, 'meanwhile');
      const unserved = await untilProxy(stack, 'elsewhere', 'be served by nobody', (proxy) => {
        return conditionOf(proxy, 'Ready').reason === 'ProviderNotServed';
      });
      assert.notEqual(unserved.status.phase, 'Failed', 'an unknown provider is waited for');
      assert.match(unserved.status.message, /"nowhere".*configured are: proxmox-local$/);

      writeFileSync(stack.providersConfigFile, good);
      editConfig(stack, withNewImageAndProvider());
      await until(stack, 'the mended config should be in force', async () => {
        assert.equal(await metric(stack, 'proxy_operator_config_valid'), '1');
        for (const provider of ['proxmox-local', 'nowhere']) {
          assert.equal((await configValid(stack, provider)).status, 'True');
        }
      });
      await untilReady(stack, 'elsewhere');
      // Nobody has to ask: what failed for want of the image is tried again.
      await untilReady(stack, 'wants-image');
    },
  );
});

test('a worker does not start with a bad providers config: exit code 2, all problems', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bad-config-'));
  const file = join(folder, 'providers.yaml');
  writeFileSync(file, badConfig);
  const program = join(checkout, 'worker/main.ts');
  const args = [program, `--providers-config=${file}`];
  const { code, stdout } = await runCommand(process.execPath, args, { timeoutMs: 60_000 });
  rmSync(folder, { recursive: true });
  assert.equal(code, 2, stdout);
  const [line = '', ...more] = stdout.trim().split('\n');
  assert.deepEqual(more, []);
  const logged = z.object({ problems: z.array(z.string()), file: z.string() }).parse(JSON.parse(line)); // prettier-ignore
  assert.deepEqual(logged.problems, badConfigProblems);
  assert.equal(logged.file, file);
});

function withNewImageAndProvider(): (text: string) => string {
  return edited(({ providers }) => {
    const [home] = providers;
    assert.ok(home);
    const templates = { 'debian-13': { vmid: 9001 }, 'debian-99': { vmid: 9001 } };
    home.proxmox['templates'] = templates;
    providers.push({ ...home, name: 'nowhere' });
  });
}

async function untilFailed(stack: SystemStack, name: string): ReturnType<typeof readProxy> {
  return await untilProxy(stack, name, 'fail', (proxy) => {
    assert.equal(proxy.status.phase, 'Failed');
    assert.ok(proxy.status.message.includes(unknownImage));
    assert.equal(conditionOf(proxy, 'Stalled').status, 'True');
  });
}

/** Value of a metric of the worker that has no labels. */
async function metric({ ports }: SystemStack, name: string): Promise<string | undefined> {
  const { body } = await request(`http://127.0.0.1:${ports.workerMetrics}/metrics`);
  return new RegExp(`^${name} (\\S+)$`, 'm').exec(await body.text())?.[1];
}

const healthObject = z.object({
  status: z.object({
    conditions: z.array(z.object({ type: z.string(), status: z.string(), message: z.string() })),
  }),
});

async function configValid(
  stack: SystemStack,
  provider: string,
): Promise<{ status: string; message: string }> {
  const output = await stack.kubectl('get', 'ph', provider, '-o', 'json');
  const { conditions } = healthObject.parse(JSON.parse(output)).status;
  const found = conditions.find(({ type }) => type === 'ConfigValid');
  assert.ok(found, `${provider} has no condition ConfigValid`);
  return found;
}
