import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { allFailPast, TargetDown } from '../../../activities/probe/targetDown.ts';
import type { LatestProbe } from '../../../activities/probe/targetDown.ts';

const url = 'http://target.example/';
const past = (uid: string): LatestProbe => ({ uid, url, healthy: false, pastProxy: true });
const three = [past('a'), past('b'), past('c')];

describe('ProbeTargetDown', () => {
  for (const [title, latest, expected] of [
    ['three Proxies that all fail past the proxy', three, true],
    ['two are too few', three.slice(1), false],
    ['three addresses of two Proxies are too few', [past('a'), past('a'), past('b')], false],
    [
      'one that answers shows that the target is up',
      [...three, { ...past('d'), healthy: true }],
      false,
    ],
    [
      'one that fails at the proxy itself is no witness',
      [...three, { ...past('d'), pastProxy: false }],
      false,
    ],
    [
      'Proxies with another URL do not count',
      [...three, { ...past('d'), url: 'http://x/', healthy: true }],
      true,
    ],
  ] as const) {
    it(`${title}: ${expected}`, () => assert.equal(allFailPast(url, latest), expected));
  }

  describe('with a direct request', () => {
    let now: number;
    let reachable: boolean;
    let asked: number;
    let targetDown: TargetDown;

    beforeEach(() => {
      [now, reachable, asked] = [0, false, 0];
      targetDown = new TargetDown({
        now: () => now,
        reachable: () => {
          asked++;
          return Promise.resolve(reachable);
        },
      });
    });

    it('spares all while the target does not answer directly either', async () => {
      assert.equal(await targetDown.spares(url, three), true);
    });

    it('spares nobody when the target answers directly', async () => {
      reachable = true;
      assert.equal(await targetDown.spares(url, three), false);
    });

    it('asks directly once for many Proxies, and again later', async () => {
      for (let n = 0; n < 20; n++) await targetDown.spares(url, three);
      assert.equal(asked, 1);
      now = 11_000;
      await targetDown.spares(url, three);
      assert.equal(asked, 2);
    });

    it('spares for five minutes at most', async () => {
      for (; now < 300_000; now += 30_000) assert.equal(await targetDown.spares(url, three), true);
      assert.equal(await targetDown.spares(url, three), false);
    });

    it('begins anew after the target was back', async () => {
      await targetDown.spares(url, three);
      now = 400_000;
      targetDown.answered(url);
      assert.equal(await targetDown.spares(url, three), true);
    });
  });
});
