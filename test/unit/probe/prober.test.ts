import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { aProxy } from '../../support/aProxy.ts';
import { pastProbe, probedProxy, ProberRig, refusedProbe } from '../../support/proberRig.ts';

describe('the prober', () => {
  let rig: ProberRig;
  beforeEach(() => {
    rig = new ProberRig();
  });

  it('probes an address at once and tells the first good answer', async () => {
    rig.update(probedProxy('p1', { phase: 'Provisioning' }));
    await rig.pass(1);
    assert.equal(rig.probed.length, 0);
    rig.update(probedProxy('p1', { phase: 'Running', ip: '10.0.0.1' }));
    await rig.pass(1);
    assert.deepEqual(rig.told, [
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
    rig.update(probedProxy('p1', { phase: 'Ready', ip: '10.0.0.1', healthy: true }));
    await rig.pass(300);
    assert.ok(rig.probed.length >= 9, String(rig.probed.length));
    assert.equal(rig.told.length, 0);
  });

  it('starts from the statuses after a restart, and marks down at the threshold', async () => {
    rig.outcomes.set('10.0.0.1', refusedProbe);
    rig.update(probedProxy('p1', { phase: 'Ready', ip: '10.0.0.1', healthy: true }));
    await rig.pass(60);
    assert.equal(rig.told.length, 0);
    await rig.pass(30);
    assert.deepEqual(
      rig.told.map(({ healthy, reason }) => [healthy, reason]),
      [[false, 'ConnectionRefused']],
    );
  });

  it('does not tell that a proxy is healthy because of a probe that failed', async () => {
    rig.update(probedProxy('p1', { phase: 'Ready', ip: '10.0.0.1', healthy: true }));
    await rig.pass(1);
    // Its VM was found stopped, so the workflow took the good word back.
    rig.update(probedProxy('p1', { phase: 'Running', ip: '10.0.0.1', healthy: null }));
    rig.outcomes.set('10.0.0.1', refusedProbe);
    await rig.pass(40);
    assert.equal(rig.told.length, 0);
    rig.outcomes.delete('10.0.0.1');
    await rig.pass(40);
    assert.equal(rig.told.at(-1)?.healthy, true);
  });

  it('tells again, ever more rarely, while the status does not show it', async () => {
    rig.temporal = 'refuses';
    rig.update(probedProxy('p1', { phase: 'Running' }));
    rig.update(probedProxy('p1', { phase: 'Running', ip: '10.0.0.1' }));
    await rig.pass(1);
    rig.temporal = 'takes';
    await rig.pass(65);
    assert.equal(rig.told.length, 1);
    await rig.pass(3_000);
    assert.ok(rig.told.length >= 5 && rig.told.length <= 9, String(rig.told.length));
    const sequences = rig.told.map(({ sequence }) => sequence);
    assert.deepEqual(
      sequences,
      [...new Set(sequences)].sort((a, b) => a - b),
    );
    rig.update(probedProxy('p1', { phase: 'Ready', ip: '10.0.0.1', healthy: true }));
    const before = rig.told.length;
    await rig.pass(3_000);
    assert.equal(rig.told.length, before);
  });

  it('probes a replacement beside the serving VM and keeps its verdict when it takes over', async () => {
    const replacement = { vmid: 2, node: 'n', vmName: 'v', ip: '10.0.0.2', specHash: 'h' };
    rig.update(probedProxy('p1', { phase: 'Ready', ip: '10.0.0.1', healthy: true }));
    rig.update(probedProxy('p1', { phase: 'Ready', ip: '10.0.0.1', healthy: true, replacement }));
    await rig.pass(1);
    assert.deepEqual(
      rig.told.map(({ ip, healthy }) => [ip, healthy]),
      [['10.0.0.2', true]],
    );
    rig.update(probedProxy('p1', { phase: 'Ready', ip: '10.0.0.2', healthy: true }));
    await rig.pass(100);
    assert.equal(rig.told.length, 1);
  });

  it('starts from nothing when the port changes', async () => {
    const status = { phase: 'Ready', ip: '10.0.0.1', healthy: true };
    rig.update(probedProxy('p1', status));
    await rig.pass(1);
    rig.update(probedProxy('p1', status, { port: 8080 }));
    await rig.pass(1);
    assert.deepEqual(
      rig.told.map(({ port, healthy }) => [port, healthy]),
      [[8080, true]],
    );
  });

  it('does not probe what is under deletion', async () => {
    const deleted = aProxy({
      metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' },
      status: { phase: 'Ready', ip: '10.0.0.1', healthy: true },
    });
    rig.update(deleted);
    await rig.pass(5);
    assert.equal(rig.probed.length, 0);
  });

  it('marks nobody down while the target itself is down, for five minutes', async () => {
    rig.targetReachable = false;
    const proxies = ['1', '2', '3'].map((n) => {
      rig.outcomes.set(`10.0.0.${n}`, pastProbe);
      return probedProxy(`p${n}`, { phase: 'Ready', ip: `10.0.0.${n}`, healthy: true });
    });
    rig.update(...proxies);
    await rig.pass(300);
    assert.equal(rig.told.length, 0);
    assert.ok(rig.lines.some(({ msg }) => msg === 'probe target down, nobody marked down'));
    await rig.pass(120);
    assert.equal(new Set(rig.told.map(({ ip }) => ip)).size, 3);
    assert.ok(rig.told.every(({ healthy }) => !healthy));
  });

  it('knows a target that is down although a proxy is broken by itself and another is asked once an hour', async () => {
    const ready = (n: number, spec = {}) =>
      probedProxy(`p${n}`, { phase: 'Ready', ip: `10.0.0.${n}`, healthy: true }, spec);
    const rarely = ready(5, { healthCheck: { intervalSeconds: 3_600 } });
    const all = [ready(1), ready(2), ready(3), ready(4), rarely];
    rig.update();
    rig.update(...all);
    await rig.pass(60);
    rig.told.length = 0;
    rig.outcomes.set('10.0.0.4', refusedProbe);
    for (const n of [1, 2, 3]) rig.outcomes.set(`10.0.0.${n}`, pastProbe);
    rig.targetReachable = false;
    await rig.pass(200);
    assert.ok(rig.told.length > 0);
    assert.ok(rig.told.every(({ ip, healthy }) => ip === '10.0.0.4' && !healthy));
  });

  it('marks down a proxy that fails by itself while others serve', async () => {
    rig.targetReachable = false;
    rig.outcomes.set('10.0.0.1', pastProbe);
    rig.prober.update(
      ['1', '2', '3'].map((n) =>
        probedProxy(`p${n}`, { phase: 'Ready', ip: `10.0.0.${n}`, healthy: true }),
      ),
    );
    await rig.pass(100);
    assert.deepEqual(
      rig.told.map(({ ip, healthy }) => [ip, healthy]),
      [['10.0.0.1', false]],
    );
  });
});
