import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { boundedLookup, type LookupAll } from '../../../activities/probe/lookup.ts';

/** What a name server is asked and has not answered yet. */
class Names {
  readonly asked: string[] = [];
  readonly #open = new Map<string, (error: Error | null, addresses: LookupAddress[]) => void>();
  readonly lookup: LookupAll = (hostname, _options, callback) => {
    this.asked.push(hostname);
    this.#open.set(hostname, callback);
  };

  answer(hostname: string, error: Error | null = null): void {
    const callback = this.#open.get(hostname);
    this.#open.delete(hostname);
    callback?.(error, error ? [] : [{ address: `10.0.0.${hostname.length}`, family: 4 }]);
  }
  open(): string[] {
    return [...this.#open.keys()];
  }
}

const ask = (lookup: LookupFunction, hostname: string): Promise<unknown> =>
  new Promise((resolve) => {
    lookup(hostname, { all: true }, (error, addresses) => resolve(error ?? addresses));
  });

describe('the lookup of host names for probes', () => {
  it('keeps two threads at most busy, and comes to every name', async () => {
    const names = new Names();
    const lookup = boundedLookup(names.lookup);
    const all = ['a', 'bb', 'ccc', 'dddd'].map((name) => ask(lookup, name));
    assert.deepEqual(names.open(), ['a', 'bb']);
    // One that hangs leaves the other place to all others.
    for (const name of ['bb', 'ccc', 'dddd']) {
      names.answer(name);
      assert.ok(names.open().length <= 2);
    }
    assert.deepEqual(names.asked, ['a', 'bb', 'ccc', 'dddd']);
    assert.deepEqual(await all[3], [{ address: '10.0.0.4', family: 4 }]);
    names.answer('a');
    await all[0];
  });

  it('asks once for a name that many probes want at the same time, and again later', async () => {
    const names = new Names();
    const lookup = boundedLookup(names.lookup);
    const all = Array.from({ length: 100 }, () => ask(lookup, 'squid.example'));
    names.answer('squid.example');
    assert.equal(new Set((await Promise.all(all)).map((one) => JSON.stringify(one))).size, 1);
    assert.deepEqual(names.asked, ['squid.example']);
    const later = ask(lookup, 'squid.example');
    names.answer('squid.example');
    await later;
    assert.equal(names.asked.length, 2);
  });

  it('passes on that a name is unknown, and answers one address where one is asked for', async () => {
    const names = new Names();
    const lookup = boundedLookup(names.lookup);
    const unknown = ask(lookup, 'nobody');
    names.answer('nobody', new Error('ENOTFOUND'));
    assert.match(String(await unknown), /ENOTFOUND/);
    const one = new Promise((resolve) => {
      lookup('a', {}, (error, address, family) => resolve([error, address, family]));
    });
    names.answer('a');
    assert.deepEqual(await one, [null, '10.0.0.1', 4]);
  });
});
