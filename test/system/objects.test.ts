/** The API server itself refuses a bad object, with a sentence a person understands (design §2). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { parseProxy, type Proxy } from '../../api/proxy.ts';
import type { CommandResult } from '../../deploy/dev/command.ts';
import { eventually } from '../support/eventually.ts';
import { startApiServer, type ApiServer } from './support/apiserver.ts';
import { accepted, external, managed, refused } from './support/proxyCases.ts';

const crds = fileURLToPath(new URL('../../deploy/crds', import.meta.url));
const samples = fileURLToPath(new URL('../../deploy/samples', import.meta.url));
const canary = 'canary-of-cloud-init';

function proxy(spec: object, name = 'proxy'): string {
  return JSON.stringify({
    apiVersion: 'egress-proxies.io/v1alpha1',
    kind: 'Proxy',
    metadata: { name, namespace: 'default' },
    spec,
  });
}

describe('objects at a real API server', { timeout: 180_000 }, () => {
  let server: ApiServer;
  const kubectl = (...args: string[]): Promise<CommandResult> => server.kubectl.run(args);
  const tryOut = (object: string): Promise<CommandResult> =>
    server.kubectl.run(['create', '--dry-run=server', '--validate=strict', '-f', '-'], {
      input: object,
    });
  const apply = (object: string): Promise<CommandResult> =>
    server.kubectl.run(['apply', '--server-side', '-f', '-'], { input: object });
  const patchStatus = (resource: string, name: string, status: object): Promise<CommandResult> => {
    const patch = JSON.stringify({ status });
    return kubectl('patch', resource, name, '--subresource=status', '--type=merge', '-p', patch);
  };
  const read = async (name: string): Promise<Proxy> =>
    parseProxy(JSON.parse(await succeed(kubectl('get', 'px', name, '-o', 'json'))));
  const explain = async (path: string): Promise<string> =>
    (await succeed(kubectl('explain', path))).replaceAll(/\s+/g, ' ');

  before(async () => {
    server = await startApiServer();
    await succeed(kubectl('apply', '-f', crds));
    await succeed(kubectl('wait', '--for=condition=Established', '--timeout=30s', 'crd', '--all'));
    // `get` makes kubectl learn the new kinds; what `explain` reads is published a moment after they are established.
    await eventually(async () => {
      await succeed(kubectl('get', 'px,ph'));
      await explain('px.spec');
    }, 30_000);
  });
  after(() => server.stop());

  for (const [title, spec] of accepted) {
    test(`accepts ${title}`, async () => {
      await succeed(tryOut(proxy(spec)));
    });
  }

  for (const [title, spec, ...sentences] of refused) {
    test(`refuses ${title}`, async () => {
      const answer = await fail(tryOut(proxy(spec)));
      for (const sentence of sentences) assert.ok(answer.includes(sentence), answer);
    });
  }

  test('refuses another mode for an existing Proxy, and lets provider and cloud-init change', async () => {
    await succeed(apply(proxy(managed, 'mode')));
    assert.match(
      await fail(apply(proxy({ ...external }, 'mode'))),
      /spec\.mode: Invalid value: "External": mode cannot be changed; delete the Proxy and make a new one/,
    );
    await succeed(apply(proxy({ ...managed, provider: 'other', cloudInit: '#!/bin/sh' }, 'mode')));
  });

  test('fills in the defaults, which are those of the parser', async () => {
    await succeed(apply(proxy(managed, 'defaults')));
    const { metadata, spec } = await read('defaults');
    const parsed = parseProxy({ metadata, spec: managed });
    assert.deepEqual(spec, parsed.spec);
    assert.equal(spec.mode, 'Managed');
    assert.deepEqual(spec.healthCheck, {
      intervalSeconds: 30,
      timeoutSeconds: 10,
      failureThreshold: 3,
      successThreshold: 1,
    });
  });

  test('keeps cloud-init as written, to the last byte', async () => {
    const cloudInit = '#cloud-config\r\n# \u00e9\u{1f600}\ttab \n\n';
    await succeed(apply(proxy({ ...managed, cloudInit }, 'bytes')));
    assert.equal((await read('bytes')).spec.cloudInit, cloudInit);
  });

  test('takes large cloud-init with --server-side, where plain apply runs out of annotation', async () => {
    const large = proxy({ ...managed, cloudInit: 'x'.repeat(262_144) }, 'large');
    const answer = await fail(server.kubectl.run(['apply', '-f', '-'], { input: large }));
    assert.match(answer, /metadata\.annotations: Too long: may not be more than 262144 bytes/);
    await succeed(apply(large));
    assert.match(await explain('px.spec.cloudInit'), /use `kubectl apply --server-side`/);
  });

  test('never repeats cloud-init in a refusal', async () => {
    const long = `${canary}${'\u00e9'.repeat(131_072)}`;
    for (const spec of [
      { ...managed, cloudInit: long },
      { ...managed, cloudInit: `${canary}${long}${long}` },
      { ...external, cloudInit: canary },
      { ...managed, cloudInit: canary, provider: 'Not A Name', port: 0 },
      { cloudInit: canary },
    ]) {
      assert.ok(!(await fail(apply(proxy(spec, 'refused')))).includes(canary));
    }
  });

  test('shows the columns of the design, the wide ones with -o wide', async () => {
    await succeed(apply(proxy(managed, 'columns')));
    await succeed(
      patchStatus('px', 'columns', {
        phase: 'Ready',
        ip: '192.0.2.9',
        vmid: 100_123,
        node: 'pv1-1',
        workflowID: 'proxy-1',
        message: 'serving',
        conditions: [{ type: 'Healthy', status: 'True', reason: 'ProbeSucceeded', message: '' }],
      }),
    );
    const cells = async (...args: string[]): Promise<string[][]> =>
      (await succeed(kubectl('get', 'px', 'columns', ...args)))
        .trim()
        .split('\n')
        .map((line) => line.split(/ {2,}/).map((cell) => cell.trim()));
    const [header, row = []] = await cells('-o', 'wide');
    assert.deepEqual(
      header,
      'NAME MODE PROVIDER PHASE IP HEALTHY AGE NODE VMID WORKFLOW MESSAGE'.split(' '),
    );
    const [, , , , , , age = '', ...wide] = row;
    assert.deepEqual(
      row.slice(0, 6).join(' '),
      'columns Managed proxmox-home Ready 192.0.2.9 True',
    );
    assert.match(age, /^\d+s$/);
    assert.deepEqual(wide, ['pv1-1', '100123', 'proxy-1', 'serving']);
    const [narrow] = await cells();
    assert.deepEqual(narrow, 'NAME MODE PROVIDER PHASE IP HEALTHY AGE'.split(' '));
  });

  test('stores a whole status, takes null as absent, and gives back what the parser expects', async () => {
    await succeed(apply(proxy(managed, 'status')));
    const status = {
      phase: 'Running',
      ip: null,
      healthy: false,
      provider: 'proxmox-home',
      providerID: 'vms/100123/proxy-a',
      vmid: 100_123,
      node: 'pv1-1',
      power: 'running',
      vmName: 'proxy-a',
      workflowID: 'proxy-1',
      specHash: 'aa',
      desiredSpecHash: 'bb',
      observedGeneration: 1,
      message: 'VM 100124 on pv1-2 boots',
      handled: { retry: 'today', forceDelete: null },
      everReady: true,
      leftovers: [{ provider: 'p', vmid: 1, node: 'n', upid: 'UPID:n:1', reason: 'qm unlock 1' }],
      replacement: {
        provider: 'proxmox-local',
        vmid: 100_124,
        node: 'pv1-2',
        vmName: 'proxy-b',
        ip: null,
        specHash: 'bb',
      },
      timings: { cloneTemplate: 12.5 },
      conditions: [
        {
          type: 'Ready',
          status: 'False',
          reason: 'AgentSilent',
          message: 'no address yet',
          lastTransitionTime: '2026-01-02T03:04:05Z',
          observedGeneration: 1,
        },
      ],
    };
    await succeed(patchStatus('px', 'status', status));
    const stored = await read('status');
    assert.deepEqual(stored.status, status);
    assert.equal(stored.metadata.generation, 1, 'a status is no news for the workflow');
  });

  test('refuses a status with two conditions of one type or an unknown phase', async () => {
    await succeed(apply(proxy(managed, 'conditions')));
    const ready = { type: 'Ready', status: 'True', reason: 'R', message: '' };
    assert.match(
      await fail(patchStatus('px', 'conditions', { conditions: [ready, ready] })),
      /status\.conditions\[1\]: Duplicate value/,
    );
    assert.match(
      await fail(patchStatus('px', 'conditions', { phase: 'Lost' })),
      /status\.phase: Unsupported value: "Lost"/,
    );
  });

  test('explains the fields of px.spec with their defaults', async () => {
    const text = await explain('px.spec');
    assert.match(
      text,
      /port <integer> TCP port the proxy listens on, 1 to 65535\. .* Default: 3128\./,
    );
    assert.match(text, /deletionPolicy <string> enum: Delete, Retain What happens to the VM/);
  });

  test('shows a ProviderHealth by its short name, with ready targets as a fraction', async () => {
    const object = { apiVersion: 'egress-proxies.io/v1alpha1', kind: 'ProviderHealth' };
    await succeed(apply(JSON.stringify({ ...object, metadata: { name: 'proxmox-home' } })));
    const target = {
      address: 'https://192.0.2.8:8006',
      ready: true,
      reason: 'Reachable',
      lastChecked: '2026-01-02T03:04:05Z',
      lastTransition: '2026-01-02T03:04:05Z',
      details: { pveVersion: '9.2.20' },
    };
    const down = { ...target, name: 'pv1-2', ready: false, reason: 'Unreachable', latencyMs: 12 };
    await succeed(
      patchStatus('ph', 'proxmox-home', {
        type: 'proxmox',
        ready: '1/2',
        reason: 'Unreachable',
        targets: [{ ...target, name: 'pv1-1' }, down],
        conditions: [{ type: 'ConfigValid', status: 'True', reason: 'Accepted', message: '' }],
      }),
    );
    const shown = await succeed(kubectl('get', 'ph'));
    assert.match(
      shown,
      /^NAME +TYPE +READY +REASON +CONFIG +AGE\nproxmox-home +proxmox +1\/2 +Unreachable +Accepted /,
    );
    const json = await succeed(kubectl('get', 'ph', 'proxmox-home', '-o', 'json'));
    const names = z
      .object({ status: z.object({ targets: z.array(z.object({ name: z.string() })) }) })
      .parse(JSON.parse(json))
      .status.targets.map(({ name }) => name);
    assert.deepEqual(names, ['pv1-1', 'pv1-2']);
  });

  for (const sample of ['proxy.yaml', 'proxyExternal.yaml', 'proxyFromSecret.yaml']) {
    test(`accepts deploy/samples/${sample}`, async () => {
      await succeed(
        kubectl('apply', '--dry-run=server', '--validate=strict', '-f', `${samples}/${sample}`),
      );
    });
  }
});

async function succeed(result: Promise<CommandResult>): Promise<string> {
  const { code, stdout, stderr } = await result;
  assert.equal(code, 0, stderr);
  return stdout;
}

async function fail(result: Promise<CommandResult>): Promise<string> {
  const { code, stdout, stderr } = await result;
  assert.notEqual(code, 0, `accepted: ${stdout}`);
  return stderr;
}
