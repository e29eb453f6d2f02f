/** The prober over a thousand proxies, in a time that only goes on when the test says so. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { ProbeCredentialsCache } from '../../../activities/probe/credentials.ts';
import type { ProbeOutcome, ProbeRequest } from '../../../activities/probe/probe.ts';
import { Prober, probesAtOnce, slowProbesAtOnce } from '../../../activities/probe/prober.ts';
import { TargetDown } from '../../../activities/probe/targetDown.ts';
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
const timedOut: ProbeOutcome = {
  healthy: false,
  reason: 'ProbeTimeout',
  message: 'no connection',
  pastProxy: false,
};
const count = 1_000;
const intervalMs = 30_000;
const stepMs = 100;
/** A probe that is answered takes this long. */
const quickMs = 100;

describe('the prober of a thousand Proxies', () => {
  let nowMs: number;
  let started: { ip: string; atMs: number }[];
  let underWay: { untilMs: number; hangs: boolean; end: () => void }[];
  let mostAtOnce: number;
  let told: HealthSignal[];
  let hanging: (n: number) => boolean;
  let prober: Prober;
  const { log, lines } = recordingLog();

  beforeEach(() => {
    [nowMs, started, underWay, mostAtOnce, told] = [7_000_000, [], [], 0, []];
    hanging = () => false;
    lines.length = 0;
    const now = (): number => nowMs;
    prober = new Prober({
      run: 'run-1',
      probe,
      credentials: new ProbeCredentialsCache({
        readSecret: () => Promise.reject(new Error('no Secret here')),
        now,
      }),
      targetDown: new TargetDown({ reachable: () => Promise.resolve(true), log, now }),
      signal: (_workflowId, health) => {
        told.push(health);
        return Promise.resolve();
      },
      defaultUrl: 'http://target.example/',
      log,
      now,
      random: () => 0.5,
    });
  });

  function probe({ ip, timeoutMs }: ProbeRequest): Promise<ProbeOutcome> {
    const hangs = hanging(numberOf(ip));
    started.push({ ip, atMs: nowMs });
    return new Promise((resolve) => {
      const untilMs = nowMs + (hangs ? timeoutMs : quickMs);
      underWay.push({ untilMs, hangs, end: () => resolve(hangs ? timedOut : good) });
      mostAtOnce = Math.max(mostAtOnce, underWay.length);
    });
  }
  const numberOf = (ip: string): number => {
    const [, , high = '0', low = '0'] = ip.split('.');
    return Number(high) * 256 + Number(low);
  };
  function proxies(healthy: boolean | null, healthCheck = {}, length = count): Proxy[] {
    return Array.from({ length }, (_, n) => {
      const status = { phase: 'Ready', ip: `10.9.${n >> 8}.${n & 255}`, healthy };
      // As UIDs are: the first digits decide nothing else.
      const uid = `${((n * 2_654_435_761) >>> 0).toString(16).padStart(8, '0')}-4111`;
      return aProxy({ metadata: { name: `p${n}`, uid }, spec: { healthCheck }, status });
    });
  }
  /** Lets time pass in small steps; what has ended is told to the prober before it starts more. */
  async function pass(ms: number): Promise<void> {
    for (const endMs = nowMs + ms; nowMs < endMs; nowMs += stepMs) {
      const ended = underWay.filter(({ untilMs }) => untilMs <= nowMs);
      underWay = underWay.filter(({ untilMs }) => untilMs > nowMs);
      for (const { end } of ended) end();
      await new Promise((resolve) => setImmediate(resolve));
      prober.start();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  /** The most probes that began within one second since `fromMs`. */
  function mostPerSecond(fromMs: number): number {
    const perSecond = new Map<number, number>();
    for (const { atMs } of started) {
      if (atMs < fromMs) continue;
      const second = Math.floor(atMs / 1_000);
      perSecond.set(second, (perSecond.get(second) ?? 0) + 1);
    }
    return Math.max(...perSecond.values());
  }
  /** The longest time between two probes of one address since `fromMs`, over the addresses that count. */
  function longestGap(fromMs: number, counts: (n: number) => boolean): number {
    const last = new Map<string, number>();
    let longest = 0;
    for (const { ip, atMs } of started) {
      if (atMs < fromMs || !counts(numberOf(ip))) continue;
      longest = Math.max(longest, atMs - (last.get(ip) ?? atMs));
      last.set(ip, atMs);
    }
    return longest;
  }

  it('spreads what it takes over from the statuses over the interval', async () => {
    prober.update(proxies(true));
    await pass(intervalMs + stepMs);
    assert.equal(new Set(started.map(({ ip }) => ip)).size, count);
    assert.ok(mostPerSecond(0) < 70, String(mostPerSecond(0)));
    assert.equal(told.length, 0);
  });

  it('probes at once what comes up in one second, and spreads it from the second probe on', async () => {
    prober.update([]);
    prober.update(proxies(null));
    await pass(1_000);
    assert.equal(started.length, count);
    assert.equal(told.length, count);
    const fromMs = nowMs;
    await pass(3 * intervalMs);
    assert.ok(mostPerSecond(fromMs) < 70, String(mostPerSecond(fromMs)));
    assert.ok(longestGap(fromMs, () => true) <= intervalMs + stepMs);
  });

  it('delays nobody for those that hang, however many they are', async () => {
    const slow = (n: number): boolean => n % 20 !== 0;
    hanging = slow;
    // 1,425 of them that take their whole interval: more than there are places at all.
    prober.update(proxies(true, { timeoutSeconds: 30 }, 1_500));
    await pass(3 * intervalMs);
    const fromMs = nowMs;
    await pass(3 * intervalMs);
    assert.ok(longestGap(fromMs, (n) => !slow(n)) <= intervalMs + stepMs);
    assert.equal(mostAtOnce, probesAtOnce);
    assert.ok(underWay.filter(({ hangs }) => hangs).length <= slowProbesAtOnce);
    assert.ok(told.every(({ ip, healthy }) => !healthy && slow(numberOf(ip))));
    assert.ok(lines.some(({ msg }) => msg === 'probes are late'));
  });

  it('finds in time that all of them fell silent in the same moment', async () => {
    prober.update(proxies(true));
    await pass(intervalMs);
    hanging = () => true;
    const fromMs = nowMs;
    // Three probes, the last of which takes 10 s; those that are down already are asked more often meanwhile.
    await pass(3 * intervalMs + 10_000 + 5_000);
    assert.equal(new Set(told.map(({ ip }) => ip)).size, count);
    assert.ok(longestGap(fromMs, () => true) <= intervalMs + 5_000);
    assert.ok(!lines.some(({ msg }) => msg === 'probes are late'));
    hanging = () => false;
    await pass(2 * intervalMs);
    assert.equal(told.filter(({ healthy }) => healthy).length, count);
  });
});
