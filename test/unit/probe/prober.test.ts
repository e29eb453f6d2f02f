import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { ProbeCredentialsCache } from '../../../activities/probe/credentials.ts';
import type {
  ProbeCredentials,
  ProbeOutcome,
  ProbeRequest,
} from '../../../activities/probe/probe.ts';
import { Prober, probesAtOnce } from '../../../activities/probe/prober.ts';
import { TargetDown } from '../../../activities/probe/targetDown.ts';
import { transient } from '../../../activities/providerError.ts';
import type { Proxy } from '../../../api/proxy.ts';
import type { HealthSignal } from '../../../workflows/contract/messages.ts';
import { aProxy } from '../../support/aProxy.ts';
import { recordingLog } from '../../support/recordingLog.ts';

const good: ProbeOutcome = {
  healthy: true,
  reason: 'ProbeSucceeded',
  message: 'ok',
  pastProxy: false,
};
const refused: ProbeOutcome = {
  healthy: false,
  reason: 'ConnectionRefused',
  message: 'no',
  pastProxy: false,
};
const unauthorized: ProbeOutcome = { ...refused, reason: 'ProxyAuthenticationRequired' };
const past: ProbeOutcome = { ...refused, reason: 'UnexpectedStatus', pastProxy: true };

function untilAborted(signal: AbortSignal): Promise<ProbeOutcome> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true });
  });
}

describe('the prober', () => {
  const { log, lines } = recordingLog();
  let nowMs: number;
  let outcomes: Map<string, ProbeOutcome>;
  let probed: ProbeRequest[];
  let told: (HealthSignal & { workflowId: string })[];
  let signalFails: boolean;
  let signalHangs: boolean;
  let silent: boolean;
  let accepted: string;
  let targetReachable: boolean;
  let secrets: Record<string, string>;
  let prober: Prober;

  beforeEach(() => {
    nowMs = 1_000_000;
    [outcomes, probed, told, secrets] = [new Map(), [], [], {}];
    [signalFails, signalHangs, silent, targetReachable, accepted] = [
      false,
      false,
      false,
      true,
      'CANARY',
    ];
    lines.length = 0;
    const now = (): number => nowMs;
    prober = new Prober({
      run: 'run-1',
      probe: (request, signal) => {
        probed.push(request);
        if (silent) return untilAborted(signal);
        const { password } = request.credentials ?? {};
        if (password !== undefined && password !== accepted) return Promise.resolve(unauthorized);
        return Promise.resolve(outcomes.get(request.ip) ?? good);
      },
      credentials: new ProbeCredentialsCache({ readSecret, now }),
      targetDown: new TargetDown({ reachable: () => Promise.resolve(targetReachable), log, now }),
      signal: (workflowId, health) => {
        if (signalFails) return Promise.reject(new Error('down'));
        if (signalHangs) return new Promise(() => undefined);
        told.push({ ...health, workflowId });
        return Promise.resolve();
      },
      defaultUrl: 'http://target.example/',
      log,
      now,
      random: () => 0.5,
    });
  });

  function readSecret(_namespace: string, name: string): Promise<ProbeCredentials> {
    const { username, password } = secrets;
    if (username !== undefined && password !== undefined) {
      return Promise.resolve({ username, password });
    }
    return Promise.reject(transient('CloudInitUnavailable', `Secret ${name} has no key username`));
  }
  function proxy(
    name: string,
    status: Record<string, unknown>,
    spec: Record<string, unknown> = {},
  ): Proxy {
    return aProxy({ metadata: { name, uid: name }, spec, status });
  }
  /** Lets time pass in steps and everything due happen. */
  async function pass(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      prober.start();
      await prober.settle();
      nowMs += 1_000;
    }
  }

  it('probes an address at once and tells the first good answer', async () => {
    prober.update([proxy('p1', { phase: 'Provisioning' })]);
    await pass(1);
    assert.equal(probed.length, 0);
    prober.update([proxy('p1', { phase: 'Running', ip: '10.0.0.1' })]);
    await pass(1);
    assert.deepEqual(told, [
      {
        workflowId: 'proxy-p1',
        run: 'run-1',
        sequence: 1,
        ip: '10.0.0.1',
        port: 3128,
        healthy: true,
        reason: 'ProbeSucceeded',
        message: 'ok',
      },
    ]);
  });

  it('tells nothing while nothing changes', async () => {
    prober.update([proxy('p1', { phase: 'Ready', ip: '10.0.0.1', healthy: true })]);
    await pass(300);
    assert.ok(probed.length >= 9, String(probed.length));
    assert.equal(told.length, 0);
  });

  it('starts from the statuses after a restart, and marks down at the threshold', async () => {
    outcomes.set('10.0.0.1', refused);
    prober.update([proxy('p1', { phase: 'Ready', ip: '10.0.0.1', healthy: true })]);
    await pass(60);
    assert.equal(told.length, 0);
    await pass(30);
    assert.deepEqual(
      told.map(({ healthy, reason }) => [healthy, reason]),
      [[false, 'ConnectionRefused']],
    );
  });

  it('does not tell that a proxy is healthy because of a probe that failed', async () => {
    prober.update([proxy('p1', { phase: 'Ready', ip: '10.0.0.1', healthy: true })]);
    await pass(1);
    // Its VM was found stopped, so the workflow took the good word back.
    prober.update([proxy('p1', { phase: 'Running', ip: '10.0.0.1', healthy: null })]);
    outcomes.set('10.0.0.1', refused);
    await pass(40);
    assert.equal(told.length, 0);
    outcomes.delete('10.0.0.1');
    await pass(40);
    assert.equal(told.at(-1)?.healthy, true);
  });

  it('tells again, ever more rarely, while the status does not show it', async () => {
    signalFails = true;
    prober.update([proxy('p1', { phase: 'Running' })]);
    prober.update([proxy('p1', { phase: 'Running', ip: '10.0.0.1' })]);
    await pass(1);
    signalFails = false;
    await pass(65);
    assert.equal(told.length, 1);
    await pass(3_000);
    assert.ok(told.length >= 5 && told.length <= 9, String(told.length));
    const sequences = told.map(({ sequence }) => sequence);
    assert.deepEqual(
      sequences,
      [...new Set(sequences)].sort((a, b) => a - b),
    );
    prober.update([proxy('p1', { phase: 'Ready', ip: '10.0.0.1', healthy: true })]);
    const before = told.length;
    await pass(3_000);
    assert.equal(told.length, before);
  });

  it('probes a replacement beside the serving VM and keeps its verdict when it takes over', async () => {
    const replacement = { vmid: 2, node: 'n', vmName: 'v', ip: '10.0.0.2', specHash: 'h' };
    prober.update([proxy('p1', { phase: 'Ready', ip: '10.0.0.1', healthy: true })]);
    prober.update([proxy('p1', { phase: 'Ready', ip: '10.0.0.1', healthy: true, replacement })]);
    await pass(1);
    assert.deepEqual(
      told.map(({ ip, healthy }) => [ip, healthy]),
      [['10.0.0.2', true]],
    );
    prober.update([proxy('p1', { phase: 'Ready', ip: '10.0.0.2', healthy: true })]);
    await pass(100);
    assert.equal(told.length, 1);
  });

  it('starts from nothing when the port changes', async () => {
    const status = { phase: 'Ready', ip: '10.0.0.1', healthy: true };
    prober.update([proxy('p1', status)]);
    await pass(1);
    prober.update([proxy('p1', status, { port: 8080 })]);
    await pass(1);
    assert.deepEqual(
      told.map(({ port, healthy }) => [port, healthy]),
      [[8080, true]],
    );
  });

  it('does not probe what is under deletion', async () => {
    const deleted = aProxy({
      metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' },
      status: { phase: 'Ready', ip: '10.0.0.1', healthy: true },
    });
    prober.update([deleted]);
    await pass(5);
    assert.equal(probed.length, 0);
  });

  it('marks nobody down while the target itself is down, for five minutes', async () => {
    targetReachable = false;
    const proxies = ['1', '2', '3'].map((n) => {
      outcomes.set(`10.0.0.${n}`, past);
      return proxy(`p${n}`, { phase: 'Ready', ip: `10.0.0.${n}`, healthy: true });
    });
    prober.update(proxies);
    await pass(300);
    assert.equal(told.length, 0);
    assert.ok(lines.some(({ msg }) => msg === 'probe target down, nobody marked down'));
    await pass(120);
    assert.equal(new Set(told.map(({ ip }) => ip)).size, 3);
    assert.ok(told.every(({ healthy }) => !healthy));
  });

  it('marks down a proxy that fails by itself while others serve', async () => {
    targetReachable = false;
    outcomes.set('10.0.0.1', past);
    prober.update(
      ['1', '2', '3'].map((n) =>
        proxy(`p${n}`, { phase: 'Ready', ip: `10.0.0.${n}`, healthy: true }),
      ),
    );
    await pass(100);
    assert.deepEqual(
      told.map(({ ip, healthy }) => [ip, healthy]),
      [['10.0.0.1', false]],
    );
  });

  it('uses the credentials of the Secret and names it when it is missing', async () => {
    const spec = { auth: { secretRef: { name: 'squid' } } };
    prober.update([proxy('p1', { phase: 'Running', ip: '10.0.0.1' }, spec)]);
    await pass(10);
    assert.match(told[0]?.message ?? '', /Secret squid has no key username/);
    secrets = { username: 'u', password: 'CANARY' };
    await pass(60);
    assert.deepEqual(probed[0]?.credentials, { username: 'u', password: 'CANARY' });
    assert.equal(told.at(-1)?.healthy, true);
    assert.ok(!JSON.stringify([lines, told]).includes('CANARY'));
  });

  it('takes a Secret that was changed together with its proxy for no failure', async () => {
    const auth = { secretRef: { name: 'squid' } };
    const healthCheck = { failureThreshold: 1 };
    secrets = { username: 'u', password: 'CANARY' };
    prober.update([
      proxy('p1', { phase: 'Ready', ip: '10.0.0.1', healthy: true }, { auth, healthCheck }),
    ]);
    await pass(30);
    assert.equal(probed.length, 1);
    secrets = { username: 'u', password: 'second CANARY' };
    accepted = 'second CANARY';
    await pass(300);
    assert.equal(told.length, 0);
    assert.equal(probed.filter(({ credentials }) => credentials?.password === 'CANARY').length, 2);
    assert.ok(!JSON.stringify([lines, told]).includes('CANARY'));
  });

  it('says that the proxy refuses the credentials when the Secret has no others', async () => {
    secrets = { username: 'u', password: 'wrong' };
    const auth = { secretRef: { name: 'squid' } };
    prober.update([proxy('p1', { phase: 'Ready', ip: '10.0.0.1', healthy: true }, { auth })]);
    await pass(90);
    assert.deepEqual(
      told.map(({ healthy, reason }) => [healthy, reason]),
      [[false, 'ProxyAuthenticationRequired']],
    );
    // Three in their slots, and an eager one: none was sent twice.
    assert.ok(probed.length <= 4, String(probed.length));
  });

  it('probes at once what is to be probed otherwise, whatever its interval', async () => {
    const status = { phase: 'Running', ip: '10.0.0.1', healthy: false };
    const healthCheck = { intervalSeconds: 3_600, failureThreshold: 1 };
    outcomes.set('10.0.0.1', unauthorized);
    prober.update([]);
    prober.update([proxy('p1', status, { healthCheck })]);
    await pass(3_000);
    const before = probed.length;
    prober.update([proxy('p1', { ...status, message: 'm' }, { healthCheck })]);
    await pass(2);
    assert.equal(probed.length, before);
    secrets = { username: 'u', password: 'CANARY' };
    outcomes.clear();
    prober.update([proxy('p1', status, { healthCheck, auth: { secretRef: { name: 'squid' } } })]);
    await pass(2);
    assert.equal(probed.length, before + 1);
    assert.equal(told.at(-1)?.healthy, true);
  });

  it('ends the probe of a Proxy that leaves, and tells nothing of it', async () => {
    silent = true;
    prober.update([proxy('p1', { phase: 'Running', ip: '10.0.0.1' })]);
    prober.start();
    prober.update([]);
    await prober.settle();
    assert.equal(probed.length, 1);
    assert.equal(told.length, 0);
    assert.ok(!lines.some(({ level }) => Number(level) >= 40));
  });

  it('goes on probing while Temporal takes no signal', async () => {
    signalHangs = true;
    prober.update([]);
    const many = Array.from({ length: probesAtOnce + 10 }, (_, n) =>
      proxy(`p${n}`, { phase: 'Running', ip: `10.1.${n >> 8}.${n & 255}` }),
    );
    prober.update(many);
    for (let second = 0; second < 60; second++) {
      prober.start();
      await new Promise((resolve) => setImmediate(resolve));
      nowMs += 1_000;
    }
    const times = new Map<string, number>();
    for (const { ip } of probed) times.set(ip, (times.get(ip) ?? 0) + 1);
    assert.equal(times.size, many.length);
    assert.ok([...times.values()].every((count) => count >= 2));
  });
});
