import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { allFailPast, TargetDown } from '../../../activities/probe/targetDown.ts';
import type { LatestProbe } from '../../../activities/probe/targetDown.ts';
import { recordingLog } from '../../support/recordingLog.ts';

const url = 'http://target.example/';
const past = (uid: string): LatestProbe => ({
  uid,
  url,
  atMs: 100,
  healthy: false,
  pastProxy: true,
});
const three = [past('a'), past('b'), past('c')];

describe('ProbeTargetDown', () => {
  for (const [title, latest, expected] of [
    ['three Proxies that all fail past the proxy', three, true],
    ['two are too few', three.slice(1), false],
    ['three addresses of two Proxies are too few', [past('a'), past('a'), past('b')], false],
    [
      'one that got through since shows that the target is up',
      [...three, { ...past('d'), healthy: true }],
      false,
    ],
    [
      'one that got through before the failures began is no witness',
      [...three, { ...past('d'), healthy: true, atMs: 49 }],
      true,
    ],
    [
      'one that fails at the proxy itself is no witness',
      [...three, { ...past('d'), pastProxy: false }],
      true,
    ],
    [
      'those that fail at the proxy itself do not count',
      [...three.slice(1), { ...past('d'), pastProxy: false }],
      false,
    ],
    [
      'Proxies with another URL do not count',
      [...three, { ...past('d'), url: 'http://x/', healthy: true }],
      true,
    ],
  ] as const) {
    it(`${title}: ${expected}`, () => assert.equal(allFailPast(url, 50, latest), expected));
  }

  describe('with a direct request', () => {
    let now: number;
    let reachable: boolean;
    let asked: number;
    let targetDown: TargetDown;
    const { log, lines } = recordingLog();

    beforeEach(() => {
      [now, reachable, asked] = [0, false, 0];
      lines.length = 0;
      targetDown = new TargetDown({
        log,
        now: () => now,
        reachable: () => {
          asked++;
          return Promise.resolve(reachable);
        },
      });
    });

    it('spares all while the target does not answer directly either', async () => {
      assert.equal(await targetDown.spares(url, 50, three), true);
    });

    it('spares nobody when the target answers directly', async () => {
      reachable = true;
      assert.equal(await targetDown.spares(url, 50, three), false);
    });

    it('asks directly once for many Proxies, and again later', async () => {
      for (let n = 0; n < 20; n++) await targetDown.spares(url, 50, three);
      assert.equal(asked, 1);
      now = 11_000;
      await targetDown.spares(url, 50, three);
      assert.equal(asked, 2);
    });

    it('asks directly once for a thousand Proxies that fail in the same moment', async () => {
      const all = Array.from({ length: 1_000 }, () => targetDown.spares(url, 50, three));
      assert.ok((await Promise.all(all)).every(Boolean));
      reachable = true;
      now = 20_000;
      const later = Array.from({ length: 1_000 }, () => targetDown.spares(url, 50, three));
      assert.ok(!(await Promise.all(later)).some(Boolean));
      assert.equal(asked, 2);
    });

    it('says once that the target is down, that nobody is spared any more, and that it is back', async () => {
      for (; now < 600_000; now += 30_000) await targetDown.spares(url, 50, three);
      targetDown.answered(url);
      targetDown.answered(url);
      assert.deepEqual(
        lines.map(({ msg }) => msg),
        [
          'probe target down, nobody marked down',
          'probe target down for long, proxies are marked down',
          'probe target is back',
        ],
      );
    });

    it('spares for five minutes at most', async () => {
      for (; now < 300_000; now += 30_000)
        assert.equal(await targetDown.spares(url, 50, three), true);
      assert.equal(await targetDown.spares(url, 50, three), false);
    });

    it('begins anew after the target was back', async () => {
      await targetDown.spares(url, 50, three);
      now = 400_000;
      targetDown.answered(url);
      assert.equal(await targetDown.spares(url, 50, three), true);
    });
  });
});
