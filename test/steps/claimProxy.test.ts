import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { finalizer, forceDeleteAnnotation, retryAnnotation } from '../../api/proxy.ts';
import type { ProviderConfig } from '../../api/providersConfig.ts';
import { claimProxy } from '../../activities/claimProxy.ts';
import type { StepContext, StepDeps } from '../../activities/deps.ts';
import { createKubernetesClient } from '../../activities/kubernetes/client.ts';
import type { KubernetesClient } from '../../activities/kubernetes/client.ts';
import { KubernetesProxyRecords } from '../../activities/kubernetes/kubernetesRecords.ts';
import { transient } from '../../activities/providerError.ts';
import { publishStatus } from '../../activities/publishStatus.ts';
import { releaseProxy } from '../../activities/releaseProxy.ts';
import type { ClaimProxyResult } from '../../workflows/contract/steps.ts';
import { aProviderConfig } from '../support/aPlan.ts';
import { FakeKubernetes } from '../support/fakeKubernetes.ts';
import type { FakeMetadata } from '../support/fakeKubernetes.ts';
import { recordingLog } from '../support/recordingLog.ts';
import { aStatus } from '../support/aStatus.ts';

const spec = {
  provider: 'home',
  placement: { machineType: 'small', image: 'debian-13' },
  cloudInit: '#cloud-config\n',
};
const fromSecret = {
  ...spec,
  cloudInit: undefined,
  cloudInitFrom: { secretKeyRef: { name: 'squid', key: 'userData' } },
};

describe('the steps that talk to Kubernetes only', () => {
  let server: FakeKubernetes;
  let client: KubernetesClient;
  let deps: StepDeps;
  const { log, lines } = recordingLog();
  const context: StepContext = {
    call: { signal: new AbortController().signal, writesUntilMs: Infinity },
    scheduledAtMs: 0,
    heartbeat: () => undefined,
    log,
  };

  beforeEach(async () => {
    server = await new FakeKubernetes().start();
    client = createKubernetesClient(server.kubeConfig(), 2_000);
    deps = stepDeps(client);
    lines.length = 0;
  });
  afterEach(async () => {
    await client.close();
    await server.stop();
  });

  function stepDeps(kubernetes: KubernetesClient): StepDeps {
    const unused = () => {
      throw new Error('not used by these steps');
    };
    return {
      providers: { config: knownProvider, names: unused, api: unused },
      kubernetes: new KubernetesProxyRecords(kubernetes, log),
      survey: unused,
      alarms: { read: unused, write: unused, readCollection: unused },
      installation: { id: 'i', hex: 'aaaaaa', also: [] },
      clock: { now: () => Date.now(), sleep: unused },
      pace: { taskMinMs: 1, taskMaxMs: 1, runningMs: 1, agentMs: 1, budgetScale: 1 },
      log,
    };
  }
  function knownProvider(name: string): ProviderConfig {
    if (name !== 'gone') return aProviderConfig();
    throw transient('ProviderUnknown', 'no provider is named "gone"; configured are: lab, other');
  }
  function put(fields: Record<string, unknown>, metadata: Partial<FakeMetadata> = {}) {
    const { uid } = server.put('p1', fields, metadata).metadata;
    return { namespace: 'egress', name: 'p1', uid };
  }
  async function claimed(
    fields: Record<string, unknown>,
    metadata: Partial<FakeMetadata> = {},
  ): Promise<Extract<ClaimProxyResult, { found: true }>> {
    const result = await claimProxy(deps, context, { ref: put(fields, metadata) });
    if (!result.found) throw new Error('not found');
    return result;
  }

  it('claimProxy sets the finalizer and says that it is the first claim, once', async () => {
    assert.equal((await claimed(spec)).firstClaim, true);
    assert.deepEqual(server.object('p1')?.metadata.finalizers, [finalizer]);
    assert.equal((await claimed(spec)).firstClaim, false);
    assert.equal(lines.filter(({ msg }) => msg === 'proxy claimed').length, 1);
  });

  it('claimProxy does not take a Proxy for new whose finalizer somebody removed', async () => {
    put(spec);
    server.setStatus('p1', { phase: 'Ready', vmid: 100123, everReady: true });
    const { firstClaim, recorded } = await claimed(spec);
    assert.equal(firstClaim, false);
    assert.equal(recorded.vmid, 100123);
    assert.equal(recorded.provider, 'home');
  });

  it('claimProxy reports the VM that was being made beside the one that serves, if it says where it is', async () => {
    const known = { vmid: 100124, node: 'pv1-1', vmName: 'proxy-p1-b', specHash: 'b' };
    const status = { phase: 'Ready', vmid: 100123, everReady: true };
    put(spec);
    server.setStatus('p1', {
      ...status,
      replacement: { ...known, provider: 'home', ip: '192.0.2.9' },
    });
    assert.deepEqual((await claimed(spec)).recorded.replacement, { ...known, provider: 'home' });
    server.setStatus('p1', { ...status, replacement: known });
    assert.equal((await claimed(spec)).recorded.replacement, null);
  });

  it('claimProxy reports what is wanted, absent placement as null', async () => {
    const { desired } = await claimed(spec, {
      annotations: { [retryAnnotation]: 'r1', [forceDeleteAnnotation]: 'f1' },
    });
    assert.deepEqual(desired.placement, {
      region: null,
      zone: null,
      machineType: 'small',
      image: 'debian-13',
    });
    assert.equal(desired.mode, 'Managed');
    assert.equal(desired.drainSeconds, 30);
    assert.equal(desired.retry, 'r1');
    assert.equal(desired.forceDelete, 'f1');
    assert.match(desired.specHash ?? '', /^[0-9a-f]{64}$/);
  });

  it('claimProxy gives cloud-init of a Secret the hash of the same bytes inline', async () => {
    server.secrets.set('egress/squid', { userData: spec.cloudInit });
    const inline = await claimed(spec);
    const secret = await claimed(fromSecret);
    assert.equal(secret.desired.specHash, inline.desired.specHash);
  });

  it('claimProxy reports a missing Secret as a problem, not as an error', async () => {
    const { desired } = await claimed(fromSecret);
    assert.equal(desired.specHash, null);
    assert.match(desired.cloudInitProblem ?? '', /Secret egress\/squid does not exist/);
  });

  it('claimProxy reports a Secret it may not read as a problem, with the command that allows it', async () => {
    server.refusals.set('/secrets/squid', 403);
    const { desired } = await claimed(fromSecret);
    assert.equal(desired.specHash, null);
    assert.match(
      desired.cloudInitProblem ?? '',
      /Secret egress\/squid may not be read .* kubectl create rolebinding .* --namespace=egress /,
    );
  });

  it('claimProxy reads no Secret for a deletion and adds no finalizer to it', async () => {
    const ref = put(fromSecret, { finalizers: ['example.org/other'] });
    server.remove('p1');
    const result = await claimProxy(deps, context, { ref });
    assert.ok(result.found && result.deleting);
    assert.equal(result.desired.cloudInitProblem, null);
    assert.deepEqual(server.object('p1')?.metadata.finalizers, ['example.org/other']);
    assert.ok(!server.requests.some(({ path }) => path.includes('secrets')));
  });

  it('claimProxy tells which providers its worker knows when that of the Proxy is none of them', async () => {
    const gone = await claimed({ ...spec, provider: 'gone' });
    assert.match(gone.desired.providerProblem ?? '', /"gone"; configured are: lab, other$/);
    const known = await claimed(spec);
    assert.equal(known.desired.providerProblem, null);
    const external = await claimed({ mode: 'External', address: '192.0.2.7' });
    assert.equal(external.desired.providerProblem, null);
  });

  it('claimProxy finds no object where another one has its name', async () => {
    const ref = put(spec);
    const result = await claimProxy(deps, context, { ref: { ...ref, uid: 'other' } });
    assert.deepEqual(result, { found: false });
  });

  it('claimProxy knows an External Proxy without provider and cloud-init', async () => {
    const { desired } = await claimed({ mode: 'External', address: '192.0.2.7' });
    assert.equal(desired.address, '192.0.2.7');
    assert.equal(desired.provider, '');
    assert.match(desired.specHash ?? '', /^[0-9a-f]{64}$/);
  });

  it('claimProxy lets no cloud-init into its result or its log', async () => {
    const result = await claimed({ ...spec, cloudInit: 'CANARY-7' });
    assert.ok(!JSON.stringify([result, lines]).includes('CANARY-7'));
  });

  it('publishStatus writes the status and records the Events', async () => {
    const ref = put(spec);
    const event = {
      type: 'Normal',
      reason: 'Ready',
      action: 'probeProxies',
      message: 'm',
    } as const;
    const input = { ref, status: aStatus({ phase: 'Ready' }), events: [event] };
    assert.deepEqual(await publishStatus(deps, context, input), { found: true });
    assert.equal(server.object('p1')?.status?.['phase'], 'Ready');
    assert.equal(server.events.size, 1);
  });

  it('publishStatus says when the object is gone, and records what happened to it all the same', async () => {
    const ref = { ...put(spec), uid: 'other' };
    const event = { type: 'Normal', reason: 'R', action: 'a', message: 'm' } as const;
    const input = { ref, status: aStatus(), events: [event] };
    assert.deepEqual(await publishStatus(deps, context, input), { found: false });
    assert.equal(server.events.size, 1);
  });

  it('releaseProxy removes the finalizer, also twice', async () => {
    const ref = put(spec, { finalizers: [finalizer] });
    server.remove('p1');
    assert.deepEqual(await releaseProxy(deps, context, { ref, events: [] }), { released: true });
    assert.equal(server.object('p1'), undefined);
    assert.deepEqual(await releaseProxy(deps, context, { ref, events: [] }), { released: false });
  });
});
