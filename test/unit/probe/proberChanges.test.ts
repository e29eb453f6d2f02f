import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { probesAtOnce } from '../../../activities/probe/prober.ts';
import { probedProxy, ProberRig, unauthorizedProbe } from '../../support/proberRig.ts';

describe('the prober, when something changes around it', () => {
  let rig: ProberRig;
  beforeEach(() => {
    rig = new ProberRig();
  });

  it('uses the credentials of the Secret and names it when it is missing', async () => {
    const spec = { auth: { secretRef: { name: 'squid' } } };
    rig.update(probedProxy('p1', { phase: 'Running', ip: '10.0.0.1' }, spec));
    await rig.pass(10);
    assert.match(rig.told[0]?.message ?? '', /Secret squid has no key username/);
    rig.secret = { username: 'u', password: 'CANARY' };
    await rig.pass(60);
    assert.deepEqual(rig.probed[0]?.credentials, { username: 'u', password: 'CANARY' });
    assert.equal(rig.told.at(-1)?.healthy, true);
    assert.ok(!JSON.stringify([rig.lines, rig.told]).includes('CANARY'));
  });

  it('takes a Secret that was changed together with its proxy for no failure', async () => {
    const auth = { secretRef: { name: 'squid' } };
    const healthCheck = { failureThreshold: 1 };
    rig.secret = { username: 'u', password: 'CANARY' };
    rig.update(
      probedProxy('p1', { phase: 'Ready', ip: '10.0.0.1', healthy: true }, { auth, healthCheck }),
    );
    await rig.pass(30);
    assert.equal(rig.probed.length, 1);
    rig.secret = { username: 'u', password: 'second CANARY' };
    rig.accepted = 'second CANARY';
    await rig.pass(300);
    assert.equal(rig.told.length, 0);
    assert.equal(
      rig.probed.filter(({ credentials }) => credentials?.password === 'CANARY').length,
      2,
    );
    assert.ok(!JSON.stringify([rig.lines, rig.told]).includes('CANARY'));
  });

  it('says that the proxy refuses the credentials when the Secret has no others', async () => {
    rig.secret = { username: 'u', password: 'wrong' };
    const auth = { secretRef: { name: 'squid' } };
    rig.update(probedProxy('p1', { phase: 'Ready', ip: '10.0.0.1', healthy: true }, { auth }));
    await rig.pass(90);
    assert.deepEqual(
      rig.told.map(({ healthy, reason }) => [healthy, reason]),
      [[false, 'ProxyAuthenticationRequired']],
    );
    // Three in their slots, and an eager one: none was sent twice.
    assert.ok(rig.probed.length <= 4, String(rig.probed.length));
  });

  it('probes at once what is to be probed otherwise, whatever its interval', async () => {
    const status = { phase: 'Running', ip: '10.0.0.1', healthy: false };
    const healthCheck = { intervalSeconds: 3_600, failureThreshold: 1 };
    rig.outcomes.set('10.0.0.1', unauthorizedProbe);
    rig.update();
    rig.update(probedProxy('p1', status, { healthCheck }));
    await rig.pass(3_000);
    const before = rig.probed.length;
    rig.update(probedProxy('p1', { ...status, message: 'm' }, { healthCheck }));
    await rig.pass(2);
    assert.equal(rig.probed.length, before);
    rig.secret = { username: 'u', password: 'CANARY' };
    rig.outcomes.clear();
    rig.update(probedProxy('p1', status, { healthCheck, auth: { secretRef: { name: 'squid' } } }));
    await rig.pass(2);
    assert.equal(rig.probed.length, before + 1);
    assert.equal(rig.told.at(-1)?.healthy, true);
  });

  it('ends the probe of a Proxy that leaves, and tells nothing of it', async () => {
    rig.silent = true;
    rig.update(probedProxy('p1', { phase: 'Running', ip: '10.0.0.1' }));
    rig.prober.start();
    rig.update();
    await rig.prober.settle();
    assert.equal(rig.probed.length, 1);
    assert.equal(rig.told.length, 0);
    assert.ok(!rig.lines.some(({ level }) => Number(level) >= 40));
  });

  it('goes on probing while Temporal takes no signal', async () => {
    rig.temporal = 'hangs';
    rig.update();
    const many = Array.from({ length: probesAtOnce + 10 }, (_, n) =>
      probedProxy(`p${n}`, { phase: 'Running', ip: `10.1.${n >> 8}.${n & 255}` }),
    );
    rig.update(...many);
    for (let second = 0; second < 60; second++) {
      rig.prober.start();
      await new Promise((resolve) => setImmediate(resolve));
      rig.nowMs += 1_000;
    }
    const times = new Map<string, number>();
    for (const { ip } of rig.probed) times.set(ip, (times.get(ip) ?? 0) + 1);
    assert.equal(times.size, many.length);
    assert.ok([...times.values()].every((count) => count >= 2));
  });
});
