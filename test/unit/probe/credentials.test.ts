import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { ProbeCredentialsCache } from '../../../activities/probe/credentials.ts';
import type { ProbeCredentials } from '../../../activities/probe/probe.ts';
import { transient } from '../../../activities/providerError.ts';

const first = { username: 'u', password: 'one' };
const second = { username: 'u', password: 'two' };

describe('the credentials of probes', () => {
  let nowMs: number;
  let reads: number;
  let secret: ProbeCredentials | Error;
  let cache: ProbeCredentialsCache;

  beforeEach(() => {
    [nowMs, reads, secret] = [0, 0, first];
    cache = new ProbeCredentialsCache({
      readSecret: () => {
        reads += 1;
        return secret instanceof Error ? Promise.reject(secret) : Promise.resolve(secret);
      },
      now: () => nowMs,
    });
  });

  it('are read once for a thousand Proxies with one Secret, and again after five minutes', async () => {
    const all = Array.from({ length: 1_000 }, () => cache.read('egress', 'squid'));
    assert.ok((await Promise.all(all)).every(({ password }) => password === 'one'));
    assert.equal(reads, 1);
    secret = second;
    nowMs = 299_999;
    assert.equal(await cache.read('egress', 'squid'), first);
    nowMs = 300_000;
    assert.equal(await cache.read('egress', 'squid'), second);
    assert.equal(reads, 2);
  });

  it('are read at once when a proxy refuses them, once for all that share the Secret', async () => {
    await cache.read('egress', 'squid');
    secret = second;
    nowMs = 60_000;
    const all = Array.from({ length: 1_000 }, () => cache.renewed('egress', 'squid', first));
    assert.ok((await Promise.all(all)).every((renewed) => renewed === second));
    // One that was probed with the old ones and is told late.
    assert.equal(await cache.renewed('egress', 'squid', first), second);
    assert.equal(reads, 2);
  });

  it('are read at once also when they were changed right after they had been read', async () => {
    await cache.read('egress', 'squid');
    secret = second;
    nowMs = 1;
    assert.equal(await cache.renewed('egress', 'squid', first), second);
  });

  it('are not read again and again because a proxy refuses what the Secret holds', async () => {
    await cache.read('egress', 'squid');
    for (; nowMs < 20_000; nowMs += 100) {
      assert.equal(await cache.renewed('egress', 'squid', first), null);
    }
    // The first one, and one every five seconds.
    assert.equal(reads, 1 + 4);
  });

  it('stay the last known ones while Kubernetes does not answer', async () => {
    await cache.read('egress', 'squid');
    secret = transient('KubernetesUnavailable', 'no answer');
    nowMs = 300_000;
    assert.equal(await cache.read('egress', 'squid'), first);
    assert.equal(await cache.renewed('egress', 'squid', first), null);
  });

  it('are forgotten when the Secret is gone', async () => {
    await cache.read('egress', 'squid');
    secret = transient('CloudInitUnavailable', 'Secret egress/squid does not exist');
    nowMs = 300_000;
    await assert.rejects(cache.read('egress', 'squid'), /does not exist/);
    secret = transient('KubernetesUnavailable', 'no answer');
    await assert.rejects(cache.read('egress', 'squid'), /no answer/);
  });

  it('of two namespaces are two', async () => {
    await cache.read('egress', 'squid');
    secret = second;
    assert.equal(await cache.read('other', 'squid'), second);
    assert.equal(await cache.read('egress', 'squid'), first);
  });
});
